import { type Command, Option } from 'commander'
import { newId } from '../../core/ids.ts'
import { type Organization, type Plan, plans } from '../../core/store/store.ts'
import { usage } from '../exit-codes.ts'
import type { Installation } from '../installation.ts'
import { localDirectory } from '../local-only.ts'
import { readCount, withDataDir, withExamples, withJson } from '../options.ts'
import { timeText } from '../quantities-text.ts'
import type { Terminal } from '../terminal.ts'

interface CreateOptions {
  name?: string
  plan?: Plan
  requestsPerMinute?: number
  jobsPerMinute?: number
  dataDir?: string
  json?: boolean
}

const readLimit = readCount(0, 1_000_000_000)

/** `infer org create|list`: organizations of the server on this machine, whether it runs or not. */
export function define(command: Command, terminal: Terminal): void {
  const create = withDataDir(withJson(command.command('create')))
    .summary('create an organization')
    .description('Creates an organization. It has no token yet: infer token create creates one.')
    .argument('[name]', 'its name; default: its id')
    .addOption(new Option('--name <name>', 'the same as an option').hideHelp())
    .addOption(new Option('--plan <plan>', 'its limits').choices(plans))
    .option('--requests-per-minute <count>', "overrides the plan's limit; 0 is no limit", readLimit)
    .option('--jobs-per-minute <count>', "overrides the plan's limit; 0 is no limit", readLimit)
    .action(async (argument: string | undefined, { name, json, dataDir, ...limits }: CreateOptions) => {
      const id = newId('org')
      const finalName = (argument ?? name ?? id).trim()
      if (finalName === '' || finalName.length > 128)
        throw usage('The name of an organization has 1 to 128 characters.')
      await withInstallation(localDirectory(create, dataDir), async ({ accounts }) => {
        const organization = await accounts.createOrganization({ id, name: finalName, ...limits })
        if (json) terminal.json({ organization: viewOf(organization) })
        else {
          terminal.print(`Created the organization ${organization.name} (${organization.id}).`)
          terminal.remark(`Create a token for it: infer token create --org ${organization.id}`)
        }
      })
    })
  withExamples(create, [
    ['infer org create acme', 'with the default plan'],
    ['infer org create acme --plan pro --json', 'for a program'],
  ])

  const list = withDataDir(withJson(command.command('list')))
    .summary('list the organizations')
    .description('Lists the organizations.')
    .action(async ({ json, dataDir }: { json?: boolean; dataDir?: string }) => {
      await withInstallation(localDirectory(list, dataDir), async ({ accounts }) => {
        const all = (await accounts.organizations()).map(viewOf)
        if (json) terminal.json({ organizations: all })
        else
          terminal.table(
            ['id', 'name', 'plan', 'status', 'created'],
            all.map(({ id, name, plan, status, created_at }) => [id, name, plan, status, timeText(created_at * 1000)]),
          )
      })
    })
  withExamples(list, [
    ['infer org list', 'as a table'],
    ['infer org list --json', 'for a program'],
  ])
  withExamples(command, [
    ['infer org create acme', 'create an organization'],
    ['infer org list', 'list the organizations'],
  ])
}

async function withInstallation(dataDir: string, work: (installation: Installation) => Promise<void>): Promise<void> {
  const { openInstallation } = await import('../installation.ts')
  const installation = await openInstallation(dataDir)
  try {
    await work(installation)
  } finally {
    await installation.close()
  }
}

const viewOf = (organization: Organization) => ({
  id: organization.id,
  name: organization.name,
  plan: organization.plan,
  status: organization.status,
  requests_per_minute: organization.requestsPerMinute,
  jobs_per_minute: organization.jobsPerMinute,
  created_at: Math.floor(organization.createdAt / 1000),
})
