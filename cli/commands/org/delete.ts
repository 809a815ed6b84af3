import type { Command } from 'commander'
import { organizationFor, withAccountClient } from '../../accounts/account-client.ts'
import { confirmDestructive } from '../../terminal/confirm.ts'
import { interruptible } from '../../terminal/interruption.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

interface Options extends CommonOptions {
  force?: boolean
  yes?: boolean
}

/** `infer org delete <organization>`: deletes an organization for good. */
export function define(command: Command, terminal: Terminal): void {
  const remove = withCommon(command.command('delete'))
    .summary('delete an organization for good')
    .description(
      'Deletes an organization for good: its tokens, users, files, jobs, executions and workflows. Its usage, its ledger and its audit log are kept.',
    )
    .argument('<organization>', 'id or name')
    .option('--force', 'cancel unfinished work')
    .option('--yes', 'do not ask')
    .action((text: string, { force = false, yes, json, dataDir }: Options) =>
      interruptible(terminal, signal =>
        withAccountClient(
          dataDir,
          async client => {
            const { id, name } = await organizationFor(client, text)
            const question = `Delete the organization ${name} with its tokens, users, files and jobs?`
            if (!(await confirmDestructive(question, yes, terminal, signal))) return
            const ended = await client.remove(id, { force })
            if (json) return terminal.json(ended)
            terminal.print(`Deleted the organization ${name} (${id}).`)
            terminal.remark(
              `Revoked ${ended.tokens_revoked} tokens, removed ${ended.users_removed} users, ${ended.files_removed} files and ${ended.workflows_removed} workflows, cancelled ${ended.jobs_cancelled} jobs and ${ended.executions_cancelled} executions.`,
            )
          },
          { stopsWork: true },
        ),
      ),
    )
  withExamples(remove, [
    ['infer org delete acme', 'asks first; refused while work is unfinished'],
    ['infer org delete acme --force --yes', 'cancels unfinished work, asks nothing'],
  ])
}
