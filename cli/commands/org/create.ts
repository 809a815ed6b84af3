import { type Command, Option } from 'commander'
import { withAccountClient } from '../../accounts/account-client.ts'
import { type CommonOptions, readCount, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { type LimitOptions, organizationLimitsChange, withLimits } from './options.ts'

interface Options extends CommonOptions, LimitOptions {
  name?: string
  plan?: string
  region?: string
  share?: number
}

/** `infer org create [name]`: creates an organization. */
export function define(command: Command, terminal: Terminal): void {
  const create = withLimits(
    withCommon(command.command('create'))
      .summary('create an organization')
      .description('Creates an organization. It has no token yet: infer token create creates one.')
      .argument('[name]', 'its name; default: its id')
      .addOption(new Option('--name <name>', 'the same as an option').hideHelp())
      .option('--plan <plan>', 'its default limits: free, pro, enterprise or one of infer.yaml')
      .option('--region <region>', 'the only region whose models it may use, such as EU')
      .option('--share <count>', "its share of GPU time while others wait; default: its plan's", readCount(1, 100)),
  ).action(async (argument: string | undefined, { name, plan, region, share, json, dataDir, ...limits }: Options) => {
    await withAccountClient(dataDir, async client => {
      const fields = { name: argument ?? name, plan, region, share, limits: organizationLimitsChange(limits) }
      const organization = await client.create(fields)
      if (json) return terminal.json({ organization })
      terminal.print(`Created the organization ${organization.name} (${organization.id}).`)
      terminal.remark(`Create a token for it: infer token create --org ${organization.id}`)
    })
  })
  withExamples(create, [
    ['infer org create acme', 'with the default plan'],
    ['infer org create acme --plan pro --spend-limit 100 --json', 'for a program'],
  ])
}
