package web

import (
	"context"
	"net/http"
	"time"
)

// routes is every page and every action there is. What is public is named
// first; everything else asks who is there.
func (s *Site) routes() {
	s.mux.HandleFunc("GET "+assetPath, s.serveAsset)
	s.mux.HandleFunc("GET /signin", s.showSignIn)
	s.mux.HandleFunc("POST /signin", s.signIn)
	s.mux.HandleFunc("GET "+livePath, s.serveLive)

	s.page("POST /signout", s.signOut)
	s.page("POST /unhalt", s.unhalt)

	s.page("GET /{$}", s.showOverview)
	s.page("GET /timeline", s.showTimeline)
	s.page("GET /approvals", s.showApprovals)

	s.page("GET /workflows/{name}", s.showWorkflow)
	s.page("GET /workflows/{name}/outputs", s.showWorkflowOutputs)
	s.page("GET /workflows/{name}/runs", s.showWorkflowRuns)
	s.page("GET /workflows/{name}/partitions", s.showWorkflowPartitions)
	s.page("GET /workflows/{name}/versions", s.showWorkflowVersions)
	s.page("GET /workflows/{name}/why", s.showWorkflowWhy)
	s.page("POST /workflows/{name}/rules/{tool}/{method}/revoke", s.revokeRule)
	s.page("POST /workflows/{name}/run", s.runWorkflow)
	s.page("POST /workflows/{name}/pause", s.pauseWorkflow)
	s.page("POST /workflows/{name}/resume", s.resumeWorkflow)
	s.page("POST /inputs/{id}/skip", s.skipInput)

	s.sourceRoutes()
	s.scheduleRoutes()
	s.page("GET /backfills/{id}", s.showBackfill)
	s.page("POST /backfills/{id}/confirm", s.confirmBackfill)
	s.page("POST /backfills/{id}/pause", s.pauseBackfill)
	s.page("POST /backfills/{id}/resume", s.resumeBackfill)
	s.page("POST /backfills/{id}/cancel", s.cancelBackfill)

	s.page("GET /grants", s.showGrants)
	s.page("POST /grants", s.createGrant)
	s.page("POST /grants/{id}/revoke", s.revokeGrant)

	s.page("GET /runs", s.showRuns)
	s.page("GET /runs/{id}", s.showRun)
	s.page("POST /runs/{id}/approve", s.approveRun)
	s.page("POST /runs/{id}/reject", s.rejectRun)
	s.page("POST /runs/{id}/resume", s.resumeRun)
	s.page("POST /runs/{id}/resolve", s.resolveRun)
	s.page("POST /runs/{id}/cancel", s.cancelRun)

	s.page("GET /jobs", s.showJobs)
	s.page("GET /jobs/{id}", s.showJob)
	s.page("POST /jobs/retry", s.retryJobs)
	s.page("POST /jobs/cancel", s.cancelJobs)
	s.page("POST /jobs/{id}/cancel", s.cancelJob)
	s.page("POST /jobs/{id}/retry", s.retryJob)

	s.page("GET /webhooks", s.showHooks)
	s.page("GET /webhooks/{name}", s.showHook)
	s.page("GET /webhooks/{name}/{id}", s.showDelivery)
	s.page("POST /webhooks/{name}/{id}/redeliver", s.redeliver)

	s.page("GET /audit", s.showAudit)
	s.page("GET /storage", s.showStorage)
	s.page("GET /tokens", s.showTokens)
	s.page("POST /tokens", s.createToken)
	s.page("POST /tokens/{id}/revoke", s.revokeToken)

	s.page("/", s.showLost)
}

// page adds a page that only somebody who is signed in sees.
func (s *Site) page(pattern string, show func(http.ResponseWriter, *http.Request, *visit)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		who, ok := s.signedIn(r)
		if !ok {
			s.redirectToSignIn(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
		defer cancel()
		show(w, r.WithContext(ctx), &visit{who: who, now: time.Now(), since: s.cfg.Pulse.told.Load()})
	})
}

func (s *Site) sourceRoutes() {
	s.page("GET /sources/{name}", s.showSource)
	s.page("GET /sources/{name}/rows", s.showSourceRows)
	s.page("GET /sources/{name}/rejects", s.showSourceRejects)
	s.page("GET /sources/{name}/runs", s.showSourceRuns)
	s.page("GET /sources/{name}/versions", s.showSourceVersions)
	s.page("POST /sources/{name}/run", s.runSource)
	s.page("POST /sources/{name}/pause", s.pauseSource)
	s.page("POST /sources/{name}/resume", s.resumeSource)
	s.page("POST /sources/{name}/reset", s.resetSource)
}

func (s *Site) scheduleRoutes() {
	s.page("GET /schedules/{id}", s.showSchedule)
	s.page("GET /schedules/{id}/runs", s.showScheduleRuns)
	s.page("GET /schedules/{id}/why", s.showScheduleWhy)
	s.page("GET /schedules/{id}/backfills", s.showBackfills)
	s.page("POST /schedules/{id}/run", s.runSchedule)
	s.page("POST /schedules/{id}/slots/{instant}/retry", s.retrySlot)
	s.page("POST /schedules/{id}/slots/{instant}/skip", s.skipSlot)
	s.page("POST /schedules/{id}/enable", s.enableSchedule)
	s.page("POST /schedules/{id}/disable", s.disableSchedule)
	s.page("POST /schedules/{id}/pause", s.pauseSchedule)
	s.page("POST /schedules/{id}/backfill", s.planBackfill)
}
