import type { Command } from 'commander'
import { withAccountClient } from '../../accounts/account-client.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import { timeText } from '../../terminal/quantities-text.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer org list`: lists the organizations. */
export function define(command: Command, terminal: Terminal): void {
  const list = withCommon(command.command('list'))
    .summary('list the organizations')
    .description('Lists the organizations.')
    .option('--all', 'also those that were deleted')
    .action(async ({ all, json, dataDir }: CommonOptions & { all?: boolean }) => {
      await withAccountClient(dataDir, async client => {
        const organizations = (await client.organizations()).filter(({ status }) => all || status !== 'deleted')
        if (json) return terminal.json({ organizations })
        terminal.table(
          ['id', 'name', 'plan', 'status', 'created'],
          organizations.map(({ id, name, plan, status, created_at }) => [
            id,
            printable(name),
            plan,
            status,
            timeText(created_at * 1000),
          ]),
        )
      })
    })
  withExamples(list, [
    ['infer org list', 'as a table'],
    ['infer org list --all --json', 'for a program, deleted ones included'],
  ])
}
