package cli

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/cli/agent"
)

func newMCPCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve MCP on stdin and stdout, for agents that operate Pawl",
		Long: "Serves the Model Context Protocol (MCP) on stdin and stdout, for programs that start it as\n" +
			"an MCP server. It offers the tools that the token may use, and those that make changes\n" +
			"only with --write.",
		Example: "  pawl mcp\n  pawl mcp --write --token $PAWL_TOKEN",
		GroupID: groupChange, Args: takes(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	write := cmd.Flags().Bool("write", false, "offer tools that make changes")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		routes, err := agent.Routes(cmd.Context(), c)
		if err != nil {
			return err
		}
		return agent.New(c, buildVersion().Version, routes, *write).Run(cmd.Context(), &mcp.StdioTransport{})
	}
	return cmd
}
