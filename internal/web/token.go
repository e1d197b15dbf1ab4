package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

type tokensPage struct {
	Tokens    []client.Token
	Pager     pager
	Users     []userstore.User // for administrators
	MoreUsers string           // the address of the next ones
	CanCreate bool
	CanRevoke bool
	Made      *client.NewToken // a moment ago, with its text
	Own       string           // the id of the token that this visit is by
}

const (
	tokensPerPage = 50
	usersPerPage  = 50
)

func (s *Site) showTokens(w http.ResponseWriter, r *http.Request, v *visit) {
	s.tokens(w, r, v, nil)
}

func (s *Site) tokens(w http.ResponseWriter, r *http.Request, v *visit, made *client.NewToken) {
	var list client.Page[client.Token]
	if err := s.ask(r.Context(), v, "/api/v1/tokens", listQuery(r, tokensPerPage), &list); err != nil {
		s.problem(w, r, err)
		return
	}
	out := tokensPage{
		Tokens: list.Items, Pager: pagerOf(r, list.NextCursor), Made: made, Own: v.who.token.ID,
		CanCreate: v.may("tokens", "admin"), CanRevoke: v.may("tokens", "write"),
	}
	if out.CanCreate {
		if err := s.addUsers(r, &out); err != nil {
			s.problem(w, r, err)
			return
		}
	}
	s.show(w, r, "tokens.html", s.frameFor(r, v, "tokens", "Tokens and users"), out)
}

func (s *Site) addUsers(r *http.Request, out *tokensPage) error {
	after := r.URL.Query().Get("users")
	err := s.cfg.DB.Read(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		out.Users, err = userstore.In(tx).ListUsers(ctx, after, usersPerPage+1)
		return err
	})
	if len(out.Users) > usersPerPage {
		out.Users = out.Users[:usersPerPage]
		query := r.URL.Query()
		query.Set("users", out.Users[usersPerPage-1].Name)
		out.MoreUsers = pathWith("/tokens", query)
	}
	return err
}

// createToken shows the new token's text in the answer itself: it is not kept
// anywhere, not even for the next page.
func (s *Site) createToken(w http.ResponseWriter, r *http.Request, v *visit) {
	body := map[string]any{"name": strings.TrimSpace(r.FormValue("name")), "scopes": scopesOf(r)}
	for _, name := range []string{"user", "expiresIn"} {
		if value := strings.TrimSpace(r.FormValue(name)); value != "" {
			body[name] = value
		}
	}
	made := &client.NewToken{}
	if err := s.inside.post(r.Context(), v.who.text, "/api/v1/tokens", body, made); err != nil {
		s.refused(w, r, err)
		return
	}
	s.tokens(w, r, v, made)
}

// scopesOf are what was picked, or what was written.
func scopesOf(r *http.Request) []string {
	if picked := r.FormValue("allow"); picked != "" && picked != "other" {
		return []string{picked}
	}
	written := strings.FieldsFunc(r.FormValue("scopes"), func(c rune) bool { return c == ',' || c == ' ' })
	slices.Sort(written)
	return slices.Compact(written)
}

func (s *Site) revokeToken(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, "/api/v1/tokens/"+segment(r, "id")+"/revoke", nil, "Revoked. Whoever used it is signed out.")
}
