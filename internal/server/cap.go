package server

import (
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/grant"
)

// noCap is the setting of a cap that there is none of.
const noCap = "none"

// CapOf reads the setting of a cap: an amount of USD; nil if there is none.
func CapOf(text string) (*pawl.USD, error) {
	if text == noCap || text == "" {
		return nil, nil //nolint:nilnil // no cap is a cap that one can set
	}
	amount, err := pawl.ParseUSD(text)
	if err != nil || amount == 0 {
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Op: "read configuration", Msg: fmt.Sprintf("%q is not an amount of USD above 0", text), Hint: "Use an amount such as 20 or 0.50, or none."}
	}
	return &amount, nil
}

// automaticCaps are those of the grants that are made for schedules.
func (c Config) automaticCaps() (caps grant.Caps, err error) {
	if caps.USDPerDay, err = CapOf(c.GrantUSDPerDay); err != nil {
		return caps, err
	}
	caps.USDPerRun, err = CapOf(c.GrantUSDPerRun)
	return caps, err
}
