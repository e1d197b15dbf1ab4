package server

import "github.com/pawlrun/pawl/internal/repair"

// buildRepair makes who mends scripts that failed; nobody unless it was asked
// for.
func (s *server) buildRepair() (repair.Repairer, error) {
	c := s.cfg
	if c.AutoFix == "" || c.AutoFix == "off" {
		return nil, nil //nolint:nilnil // people mend scripts
	}
	key, err := secretOf(c.AutoFixKeyFile)
	if err != nil {
		return nil, err
	}
	return repair.New(repair.Config{Kind: c.AutoFix, Command: c.AutoFixCommand, URL: c.AutoFixURL, Model: c.AutoFixModel, Key: key}, s.client)
}
