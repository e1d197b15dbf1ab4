package cli

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/cli/agent"
)

func newMCPCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "Let agents operate Pawl, over MCP on stdin and stdout",
		Long: "Speaks the Model Context Protocol on stdin and stdout, for programs that start it as a\n" +
			"server. Its tools read what the token may read. Tools that change something are offered\n" +
			"with --write only, and then do what the token may do.",
		Example: "  pawl mcp\n  pawl mcp --write --token $PAWL_TOKEN",
		GroupID: groupChange, Args: takes(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	write := cmd.Flags().Bool("write", false, "offer tools that change something")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		return agent.New(c, buildVersion().Version, *write).Run(cmd.Context(), &mcp.StdioTransport{})
	}
	return cmd
}
