package web

import (
	"net/http"

	"github.com/pawlrun/pawl/client"
)

// Pages of hooks are below /webhooks: what is below /hooks belongs to those who send.
const webhooksPath = "/webhooks"

type hooksPage struct {
	Hooks []client.Hook
	Pager pager
}

const (
	hooksPerPage      = 50
	deliveriesPerPage = 50
)

func (s *Site) showHooks(w http.ResponseWriter, r *http.Request, v *visit) {
	var list client.Page[client.Hook]
	if err := s.ask(r.Context(), v, client.HooksPath, listQuery(r, hooksPerPage), &list); err != nil {
		s.problem(w, r, err)
		return
	}
	f := s.frameFor(r, v, "hooks", "Hooks")
	f.Live = everyLane
	s.show(w, r, "hooks.html", f, hooksPage{list.Items, pagerOf(r, list.NextCursor)})
}

type hookPage struct {
	Hook       client.Hook
	Deliveries []client.Delivery
	Outcome    string
	Outcomes   []string
	CanWrite   bool
	Base       string
	Pager      pager
}

func (s *Site) showHook(w http.ResponseWriter, r *http.Request, v *visit) {
	out := hookPage{Outcome: r.URL.Query().Get("outcome"), Outcomes: []string{"delivered", "pending", "filtered", "failed", "refused"}, CanWrite: v.may("hooks", "write"), Base: webhooksPath + "/" + segment(r, "name")}
	path := client.HooksPath + "/" + segment(r, "name")
	if err := s.ask(r.Context(), v, path, nil, &out.Hook); err != nil {
		s.problem(w, r, err)
		return
	}
	var list client.Page[client.Delivery]
	if err := s.ask(r.Context(), v, path+"/deliveries", listQuery(r, deliveriesPerPage, "outcome"), &list); err != nil {
		s.problem(w, r, err)
		return
	}
	out.Deliveries, out.Pager = list.Items, pagerOf(r, list.NextCursor)
	f := s.frameFor(r, v, "hooks", "Hook "+out.Hook.Name)
	f.Live = "hook:" + out.Hook.Name
	s.show(w, r, "hook.html", f, out)
}

type deliveryPage struct {
	Delivery client.Delivery
	Base     string // of the hook
}

// Again reports whether it can be delivered again.
func (p deliveryPage) Again() bool { return p.Delivery.Outcome != "refused" }

func (s *Site) showDelivery(w http.ResponseWriter, r *http.Request, v *visit) {
	out := deliveryPage{Base: webhooksPath + "/" + segment(r, "name")}
	if err := s.ask(r.Context(), v, apiDelivery(r, ""), nil, &out.Delivery); err != nil {
		s.problem(w, r, err)
		return
	}
	f := s.frameFor(r, v, "hooks", "Delivery "+out.Delivery.ID)
	f.Live = "hook:" + out.Delivery.Hook
	s.show(w, r, "delivery.html", f, out)
}

func apiDelivery(r *http.Request, below string) string {
	return client.HooksPath + "/" + segment(r, "name") + "/deliveries/" + segment(r, "id") + below
}

func (s *Site) redeliver(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiDelivery(r, "/redeliver"), nil, "Delivered again.")
}
