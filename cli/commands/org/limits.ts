import type { Command } from 'commander'
import { organizationFor, withAccountClient } from '../../accounts/account-client.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { type LimitOptions, organizationLimitsChange, withLimits } from './options.ts'
import { limitRows } from './show.ts'

/** `infer org limits <organization>`: shows the limits, or changes those that are given. */
export function define(command: Command, terminal: Terminal): void {
  const limits = withLimits(
    withCommon(command.command('limits'))
      .summary('show or change the limits')
      .description(
        'Shows the limits of an organization, or changes those that are given; none returns to the figure of the plan.',
      )
      .argument('<organization>', 'id or name'),
  ).action(async (text: string, { json, dataDir, ...options }: CommonOptions & LimitOptions) => {
    await withAccountClient(dataDir, async client => {
      const found = await organizationFor(client, text)
      const change = organizationLimitsChange(options)
      const organization = change ? await client.update(found.id, { limits: change }) : found
      const { plan, limits: now } = organization
      if (json) terminal.json({ plan, limits: now })
      else terminal.table([`limits (plan ${plan})`, printable(organization.name)], limitRows(now))
    })
  })
  withExamples(limits, [
    ['infer org limits acme', 'show them'],
    ['infer org limits acme --spend-limit 100 --jobs-per-minute 20', 'change two of them'],
    ['infer org limits acme --jobs-per-minute none', 'as its plan says'],
  ])
}
