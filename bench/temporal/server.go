package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/schema"
	postgres "go.temporal.io/server/schema/postgresql/v12"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
	"go.uber.org/zap"
)

const (
	namespace = "bench"
	loopback  = "127.0.0.1"
	// visibilitySchema has the tables of what Temporal calls visibility, which
	// would have a database of their own elsewhere. Some names are in both.
	visibilitySchema = "visibility"
)

// stores are where a server keeps executions, and what it needs to list them.
type stores struct{ executions, visibility config.SQL }

// newStores makes the tables in an empty database.
func newStores(database string) (stores, error) {
	u, err := url.Parse(database)
	if err != nil {
		return stores{}, err
	}
	password, _ := u.User.Password()
	attributes := map[string]string{"sslmode": "disable"} // loopback
	s := stores{executions: config.SQL{
		PluginName: postgresql.PluginNamePGX, ConnectProtocol: "tcp", ConnectAddr: u.Host,
		User: u.User.Username(), Password: password, DatabaseName: u.Path[1:],
		ConnectAttributes: attributes, MaxConns: connections, MaxIdleConns: connections, MaxConnLifetime: time.Hour,
	}}
	s.visibility = s.executions
	s.visibility.ConnectAttributes = map[string]string{"sslmode": "disable", "search_path": visibilitySchema}
	s.visibility.MaxConns, s.visibility.MaxIdleConns = visibilityConnections, visibilityConnections
	if err := setUp(&s.executions, "postgresql/v12/temporal", postgres.Version, "create schema "+visibilitySchema); err != nil {
		return stores{}, fmt.Errorf("make tables: %w", err)
	}
	if err := setUp(&s.visibility, "postgresql/v12/visibility", postgres.VisibilityVersion); err != nil {
		return stores{}, fmt.Errorf("make tables of visibility: %w", err)
	}
	ns, err := sqlite.NewNamespaceConfig(clusterName, namespace, false, nil) // it is for every SQL database
	if err != nil {
		return stores{}, err
	}
	return s, sqlite.CreateNamespaces(&s.executions, ns)
}

// setUp makes the tables of a schema of this release, and says which one it is.
func setUp(cfg *config.SQL, folder, version string, more ...string) (err error) {
	db, err := sql.NewSQLAdminDB(sqlplugin.DbKindUnknown, cfg, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	text, err := fs.ReadFile(schema.Assets(), folder+"/schema.sql")
	if err != nil {
		return err
	}
	statements, err := persistence.LoadAndSplitQueryFromReaders([]io.Reader{bytes.NewReader(text)})
	if err != nil {
		return err
	}
	for _, statement := range append(more, statements...) {
		if err := db.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	if err := db.CreateSchemaVersionTables(); err != nil {
		return err
	}
	return db.UpdateSchemaVersion(cfg.DatabaseName, version, version)
}

const clusterName = "active"

// startServer starts all four services of Temporal in this process, on
// loopback, and returns the address of its frontend.
func startServer(s stores) (_ temporal.Server, frontend string, err error) {
	cfg := &config.Config{
		Global: config.Global{Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: loopback}},
		Persistence: config.Persistence{
			DefaultStore: "executions", VisibilityStore: "visibility", NumHistoryShards: shards,
			DataStores: map[string]config.DataStore{"executions": {SQL: &s.executions}, "visibility": {SQL: &s.visibility}},
		},
		Services:            map[string]config.Service{},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Archival: config.Archival{
			History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
	}
	ports, err := freePorts(2 * len(temporal.DefaultServices))
	if err != nil {
		return nil, "", err
	}
	for i, name := range temporal.DefaultServices {
		cfg.Services[name] = config.Service{RPC: config.RPC{GRPCPort: ports[2*i], MembershipPort: ports[2*i+1], BindOnLocalHost: true}}
	}
	frontend = net.JoinHostPort(loopback, strconv.Itoa(cfg.Services["frontend"].RPC.GRPCPort))
	cfg.PublicClient = config.PublicClient{HostPort: frontend}
	cfg.ClusterMetadata = &cluster.Config{
		FailoverVersionIncrement: 10, MasterClusterName: clusterName, CurrentClusterName: clusterName,
		ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend}},
	}
	logging := zap.NewProductionConfig() // to standard error
	logging.Level, logging.DisableStacktrace = zap.NewAtomicLevelAt(zap.ErrorLevel), true
	logger, err := logging.Build()
	if err != nil {
		return nil, "", err
	}
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithLogger(log.NewZapLogger(logger)),
		temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithDynamicConfigClient(settings()),
	)
	if err != nil {
		return nil, "", err
	}
	return server, frontend, server.Start()
}

// settings are those that its limits of rates would be reached without.
func settings() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		dynamicconfig.FrontendRPS.Key():                         100_000,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():  100_000,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():           100_000,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():            100_000,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():           100_000,
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  partitions,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): partitions,
	}
}

// highestPort is what Temporal's table of members can hold.
const highestPort = 1<<15 - 1

// freePorts finds that many at once, so that they differ.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range 100 * n {
		port := 10_000 + rand.IntN(highestPort-10_000)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		defer l.Close() //nolint:errcheck // nobody has connected
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("find ports: only %d of %d are free", len(ports), n)
}
