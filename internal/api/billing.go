package api

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

const billingResource = "billing"

type listAccountsInput struct {
	PageInput
	AllInput
	Days int `query:"days" minimum:"1" maximum:"366" default:"30" doc:"Tell what was spent in this many days, today included."`
}

const accountCursor = "account"

func (a *API) listAccounts(ctx context.Context, in *listAccountsInput) (*pageOutput[client.Account], error) {
	at, id, err := in.placeInTime(accountCursor)
	if err != nil {
		return nil, err
	}
	owner, err := in.owner(callOf(ctx).token, billingResource)
	if err != nil {
		return nil, err
	}
	var list []billing.Account
	var next grantstore.AccountCursor
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		list, next, err = billing.Accounts(ctx, tx, owner, grantstore.AccountCursor{CreatedAt: at, ID: id}, in.Days, in.Limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	accounts := make([]client.Account, len(list))
	for i := range list {
		accounts[i] = accountOf(&list[i])
	}
	cursor := ""
	if next.ID != "" {
		cursor = timeCursor(next.CreatedAt, next.ID)
	}
	return &pageOutput[client.Account]{pageOf(accounts, accountCursor, cursor)}, nil
}

func accountOf(acc *billing.Account) client.Account {
	out := client.Account{
		ID: acc.ID, OwnerUserID: acc.OwnerID, Name: acc.Name, BalanceUSD: acc.Balance, KeyRef: client.NullString(acc.KeyRef), Timezone: acc.Timezone, ReservedUSD: acc.Reserved,
		Days: make([]client.DaySpend, len(acc.Days)), CreatedAt: client.At(acc.CreatedAt),
	}
	for i, d := range acc.Days {
		out.Days[i] = client.DaySpend{Day: d.Day.UTC().Format(time.DateOnly), AmountUSD: d.Amount, Receipts: d.Receipts}
	}
	return out
}

type listReceiptsInput struct {
	PageInput
	AllInput
	Account  string `query:"account" doc:"Only those of the billing account with this id."`
	Grant    string `query:"grant" doc:"Only those of the grant with this id."`
	Schedule string `query:"schedule" doc:"Only those of the schedule with this id."`
	Run      string `query:"run" doc:"Only those of the run with this id, which is that of the first attempt."`
}

const receiptCursor = "receipt"

func (a *API) listReceipts(ctx context.Context, in *listReceiptsInput) (*pageOutput[client.Receipt], error) {
	at, id, err := in.placeInTime(receiptCursor)
	if err != nil {
		return nil, err
	}
	owner, err := in.owner(callOf(ctx).token, billingResource)
	if err != nil {
		return nil, err
	}
	var f faults
	for _, p := range []struct{ pointer, value string }{{"/account", in.Account}, {"/grant", in.Grant}, {"/schedule", in.Schedule}, {"/run", in.Run}} {
		if p.value != "" {
			f.add(p.pointer, textFault(p.value, maxName), "")
		}
	}
	if err := f.problem(); err != nil {
		return nil, err
	}
	filter := grantstore.ReceiptFilter{OwnerID: owner, AccountID: in.Account, GrantID: in.Grant, ScheduleID: in.Schedule, RunID: in.Run}
	var list []grantstore.Receipt
	var next grantstore.ReceiptCursor
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		list, next, err = billing.Receipts(ctx, tx, filter, grantstore.ReceiptCursor{CreatedAt: at, ID: id}, in.Limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	items := make([]client.Receipt, len(list))
	for i := range list {
		items[i] = receiptOf(&list[i])
	}
	cursor := ""
	if next.ID != "" {
		cursor = timeCursor(next.CreatedAt, next.ID)
	}
	return &pageOutput[client.Receipt]{pageOf(items, receiptCursor, cursor)}, nil
}

func receiptOf(r *grantstore.Receipt) client.Receipt {
	out := client.Receipt{
		ID: r.ID, BillingAccountID: r.AccountID, GrantID: client.NullString(r.GrantID), ScheduleID: client.NullString(r.ScheduleID), RunID: r.RunID, Attempt: r.Attempt,
		SourceSystem: r.System, SourceReference: r.Reference, Executor: r.Executor, Model: client.NullString(r.Model),
		InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, AmountUSD: pawl.USD(r.Amount), CostSource: billing.CostSource(r.Price), CreatedAt: client.At(r.CreatedAt),
	}
	if out.CostSource == billing.CostOfPrices {
		out.Price = client.NullString(r.Price)
	}
	return out
}
