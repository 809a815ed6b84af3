import type { Command } from 'commander'
import { organizationFor, withAccountClient } from '../../accounts/account-client.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer org suspend <organization>`: refuses its tokens and starts none of its jobs. */
export function define(command: Command, terminal: Terminal): void {
  const suspend = withCommon(command.command('suspend'))
    .summary('refuse its tokens until it is resumed')
    .description(
      'Refuses the tokens of an organization and ends its open streams. What runs is finished, and jobs that wait stay until it is resumed.',
    )
    .argument('<organization>', 'id or name')
    .option('--cancel', 'cancel what runs and waits')
    .action(async (text: string, { cancel = false, json, dataDir }: CommonOptions & { cancel?: boolean }) => {
      await withAccountClient(
        dataDir,
        async client => {
          const { id } = await organizationFor(client, text)
          const { organization, ...ended } = await client.suspend(id, { cancel })
          if (json) return terminal.json({ organization, ...ended })
          terminal.print(`Suspended the organization ${organization.name}.`)
          if (cancel)
            terminal.remark(
              `Cancelled: ${ended.jobs_cancelled} jobs, ${ended.executions_cancelled} executions, ${ended.requests_cancelled} requests.`,
            )
          terminal.remark(`Accept its tokens again with: infer org resume ${id}`)
        },
        { stopsWork: cancel },
      )
    })
  withExamples(suspend, [
    ['infer org suspend acme', 'what runs is finished'],
    ['infer org suspend acme --cancel', 'what runs is cancelled'],
  ])
}
