import type { Command } from 'commander'
import { organizationFor, withAccountClient } from '../../accounts/account-client.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer org resume <organization>`: accepts its tokens and starts its jobs again. */
export function define(command: Command, terminal: Terminal): void {
  const resume = withCommon(command.command('resume'))
    .summary('accept its tokens again')
    .description('Accepts the tokens of a suspended organization again, and starts its waiting jobs.')
    .argument('<organization>', 'id or name')
    .action(async (text: string, { json, dataDir }: CommonOptions) => {
      await withAccountClient(dataDir, async client => {
        const { id } = await organizationFor(client, text)
        const organization = await client.resume(id)
        if (json) terminal.json({ organization })
        else terminal.print(`Resumed the organization ${organization.name}.`)
      })
    })
  withExamples(resume, [['infer org resume acme', 'after infer org suspend']])
}
