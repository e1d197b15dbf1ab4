package client

// ScriptRequest asks to deploy a script.
type ScriptRequest struct {
	Script   string `json:"script" minLength:"1" doc:"The source, up to 512 KiB. Its name must be that of the address."`
	Filename string `json:"filename,omitempty" maxLength:"256" example:"mail-to-sheet.workflow.ts" doc:"As messages call it; it is TypeScript unless it ends as JavaScript does. Absent is the workflow's name with .workflow.ts."`
	DryRun   bool   `json:"dryRun,omitempty" doc:"Check and compare only; change nothing."`
}

// Deployment is what a deploy did.
type Deployment struct {
	Name           string          `json:"name" example:"mail-to-sheet"`
	What           string          `json:"what" enum:"created,updated,unchanged"`
	DryRun         bool            `json:"dryRun" doc:"Nothing was changed; what shows what would be."`
	Version        string          `json:"version" doc:"A hash of the script's content."`
	PreviousScript NullString      `json:"previousScript" doc:"The previous script; null for a new workflow."`
	Warnings       []ScriptWarning `json:"warnings" nullable:"false"`
}

// ScriptWarning is something in a script that is probably not meant.
type ScriptWarning struct {
	Message string     `json:"message" example:"mail.workflow.ts:12:5: this code is never reached"`
	Line    int        `json:"line,omitempty"`
	Column  int        `json:"column,omitempty"`
	Hint    NullString `json:"hint"`
}
