import type { Command } from 'commander'
import { organizationFor, withAccountClient } from '../../accounts/account-client.ts'
import { usageFailure } from '../../terminal/exit-codes.ts'
import { type CommonOptions, orNull, readOrNone, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

interface Options extends CommonOptions {
  name?: string
  plan?: string
  region?: string
  share?: number | 'none'
}

/** `infer org update <organization>`: changes name, plan, region or share. */
export function define(command: Command, terminal: Terminal): void {
  const update = withCommon(command.command('update'))
    .summary('change name, plan, region or share')
    .description('Changes name, plan, region or share of an organization. infer org limits changes its limits.')
    .argument('<organization>', 'id or name')
    .option('--name <name>', 'its new name')
    .option('--plan <plan>', 'its default limits: free, pro, enterprise or one of infer.yaml')
    .option('--region <region>', 'the only region whose models it may use; none for any')
    .option('--share <count>', "its share of GPU time while others wait; none for its plan's", readOrNone(1, 100))
    .action(async (text: string, { name, plan, region, share, json, dataDir }: Options) => {
      if ([name, plan, region, share].every(one => one === undefined))
        throw usageFailure('Nothing to change. Give at least one of --name, --plan, --region and --share.')
      await withAccountClient(dataDir, async client => {
        const { id } = await organizationFor(client, text)
        const organization = await client.update(id, { name, plan, region: orNull(region), share: orNull(share) })
        if (json) terminal.json({ organization })
        else terminal.print(`Updated the organization ${organization.name}.`)
      })
    })
  withExamples(update, [
    ['infer org update acme --plan pro', 'other limits from the next request on'],
    ['infer org update acme --name "Acme Ltd"', 'a new name'],
  ])
}
