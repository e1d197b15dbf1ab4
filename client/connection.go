package client

// Connection is something that scripts may touch, without its settings: these
// may hold secrets.
type Connection struct {
	Name    string             `json:"name" example:"shop" doc:"What scripts call it: ctx.tools.shop."`
	Type    string             `json:"type" example:"http"`
	File    NullString         `json:"file" example:"shop.yaml" doc:"The file of its definition, without the folder; null if it has none."`
	Methods []ConnectionMethod `json:"methods" nullable:"false" doc:"What it can do, by name."`
	Blocked []BlockedMethod    `json:"blocked" nullable:"false" doc:"Methods that are refused until they are pinned, as far as is known without asking the server."`
}

// ConnectionMethod is one thing that a connection can do.
type ConnectionMethod struct {
	Name       string `json:"name" example:"post"`
	Class      string `json:"class" enum:"read,mutation" doc:"Whether it has side effects."`
	Policy     string `json:"policy" enum:"allow,ask,deny" doc:"What happens when a script calls it; ask waits for a person."`
	Reconciles bool   `json:"reconciles" doc:"Whether the outcome of a call can be checked later."`
}

// BlockedMethod is a method that is not what was agreed to.
type BlockedMethod struct {
	Name string `json:"name" example:"delete_file"`
	Why  string `json:"why" example:"It was never pinned."`
}

// ConnectionTest is how it went to try a connection out.
type ConnectionTest struct {
	OK   bool   `json:"ok" doc:"Whether calls would work, as far as is known without making one."`
	Text string `json:"text" example:"The server answered 200." doc:"What was seen, for people."`
}

// Pin is a method that somebody else describes, compared to what was agreed to.
type Pin struct {
	Method string     `json:"method" example:"delete_file"`
	Class  string     `json:"class" enum:"read,mutation" doc:"Whether it has side effects, as it is called now."`
	State  string     `json:"state" enum:"pinned,changed,new,gone" doc:"All but pinned are blocked. new: it was never pinned. gone: it was, and the other side no longer has it."`
	Pinned NullString `json:"pinned" doc:"The hash of what was agreed to; null if nothing was."`
	Now    NullString `json:"now" doc:"The hash of what it is; null if it is gone. Send it along in seen to agree to what you saw and nothing else."`
	Change NullString `json:"change" doc:"A description of what changed; text from the server in it is not trusted."`
	Was    NullString `json:"was" doc:"What was pinned, as lines to compare; null if it is unchanged or was not kept."`
	Is     NullString `json:"is" doc:"What it is, as lines to compare; null if it holds or is gone. Not to be trusted."`
	Fixed  bool       `json:"fixed" doc:"The pin is in the definition of the connection, and only changes there."`
}

// Pinned is what was agreed to.
type Pinned struct {
	Pinned  []string `json:"pinned" nullable:"false" doc:"What was agreed to by this request, or whose pin was dropped; without what was agreed to already."`
	Blocked []string `json:"blocked" nullable:"false" doc:"What is still blocked."`
}

// The states of a pin.
const (
	PinHolds   = "pinned"
	PinChanged = "changed"
	PinMissing = "new"
	PinGone    = "gone"
)
