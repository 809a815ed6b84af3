import { join } from 'node:path'
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { dataDirectory, hostEnvironment } from '../../core/config.ts'
import { readConfig } from '../../core/models/config.ts'
import { editConfigFile, previewConfigEdit } from '../../core/models/config-file.ts'
import { addPool } from '../../core/models/edit.ts'
import type { PoolSettings, SshPool } from '../../core/models/pools.ts'
import { refused } from '../terminal/exit-codes.ts'
import { readCount, withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer pool …`: other machines on which engines run, in `pools` of infer.yaml. */
export function define(command: Command, terminal: Terminal): void {
  defineAdd(command.command('add'), terminal)
  defineList(command.command('list'), terminal)
  defineClean(command.command('clean'), terminal)
  withExamples(command, [
    ['infer pool add user@box', 'check a machine, copy infer to it, and add it'],
    ['infer pool list', 'the pools of infer.yaml'],
    ['infer pool clean box', 'remove what infer has copied to a machine'],
  ])
}

function defineAdd(command: Command, terminal: Terminal): void {
  const add = withCommon(command)
    .summary('add a machine that is reached by ssh')
    .description(
      'Checks a machine and adds it to infer.yaml: connects with the ssh of this user, copies this executable to ~/.cache/infer there, and lists the devices that it finds. Use the user and the configuration of ssh with which the server runs.',
    )
    .argument('<host>', 'the machine, as ssh takes it: box, or user@box')
    .option('--name <name>', 'name of the pool; default: the host without the user')
    .option('--port <number>', 'port of its ssh server', readCount(1, 65_535))
    .option('--identity-file <path>', 'private key of ssh')
    .option('--config <path>', 'the file to add it to; default: infer.yaml in the data directory')
    .action(async (host, { name: given, port, identityFile, config, dataDir, json }) => {
      const path = config ?? join(dataDirectory(dataDir), 'infer.yaml')
      const name = given ?? nameOf(host)
      const settings = { kind: 'ssh' as const, host, port, identity_file: identityFile }
      const edit = (text: string, file: string) => addPool(text, name, settings, file)
      previewConfigEdit(path, edit)
      terminal.waiting(`Connecting to ${printable(host)}, and copying infer to it …`)
      const { inspectMachine } = await import('../../gpu/launcher/ssh/machine.ts')
      const { devices, reason } = await orRefused(inspectMachine(settings, ownSsh()))
      editConfigFile(path, edit)
      if (json)
        return terminal.json({
          pool: name,
          config: path,
          devices: devices.map(one => ({ id: one.id, name: one.name, total_bytes: one.totalBytes })),
        })
      terminal.table(
        ['device', 'name', 'memory'],
        devices.map(one => [one.id, printable(one.name), sizeText(one.totalBytes)]),
      )
      if (reason !== null) terminal.remark(printable(reason))
      terminal.print(`Added the pool '${name}' to ${path}.`)
      terminal.remark(`A running server opens it by itself. Name it in a model: pools: [local, ${name}]`)
    })
  withExamples(add, [
    ['infer pool add user@box', 'as the pool box'],
    ['infer pool add 10.0.0.7 --name box2 --port 2222', 'with another name and port'],
  ])
}

function defineList(command: Command, terminal: Terminal): void {
  const list = withCommon(command)
    .summary('list the pools of infer.yaml')
    .description('Lists the pools of infer.yaml. `infer status` shows what they have and run now.')
    .option('--config <path>', 'the configuration that the server uses')
    .action(({ config, dataDir, json }) => {
      const pools = Object.entries(poolsIn(dataDir, config))
      if (json) return terminal.json({ pools: pools.map(([name, settings]) => ({ name, ...settings })) })
      if (pools.length === 0) return terminal.remark('There is no pool. Add a machine with: infer pool add user@box')
      terminal.table(
        ['pool', 'kind', 'where'],
        pools.map(([name, one]) => [name, one.kind, printable(placeOf(one))]),
      )
    })
  withExamples(list, [
    ['infer pool list', 'as a table'],
    ['infer pool list --json', 'for a program'],
  ])
}

function defineClean(command: Command, terminal: Terminal): void {
  const clean = withCommon(command)
    .summary('remove what infer has copied to a machine')
    .description(
      'Removes the executable, the copied models and the caches of engines from the machine of a pool of the kind ssh. Refused while engines of a server run there.',
    )
    .argument('<name>', 'the pool')
    .option('--config <path>', 'the configuration that the server uses')
    .action(async (name, { config, dataDir, json }) => {
      const settings = machineOf(name, poolsIn(dataDir, config))
      const { cleanMachine } = await import('../../gpu/launcher/ssh/machine.ts')
      const bytes = await orRefused(cleanMachine(settings, ownSsh()))
      terminal.result(
        json,
        { pool: name, bytes },
        `Removed infer from ${printable(settings.host)}: ${sizeText(bytes)}.`,
      )
    })
  withExamples(clean, [['infer pool clean box', 'the pool stays in infer.yaml, and the next start copies infer again']])
}

const poolsIn = (dataDir: string | undefined, config: string | undefined) =>
  readConfig(config ?? join(dataDirectory(dataDir), 'infer.yaml'), config !== undefined).pools

const placeOf = (pool: PoolSettings): string =>
  pool.kind === 'ssh'
    ? pool.host
    : pool.kind === 'slurm'
      ? (pool.partition ?? 'the default partition')
      : (pool.namespace ?? 'the default namespace')

function machineOf(name: string, pools: ReturnType<typeof poolsIn>): SshPool {
  const settings = Object.hasOwn(pools, name) ? pools[name] : undefined
  if (!settings) throw refused('not_found', `There is no pool '${name}'. See: infer pool list`)
  if (settings.kind !== 'ssh')
    throw refused('conflict', `The pool '${name}' is a cluster: infer copies nothing there that stays.`)
  return settings
}

/** The ssh of this user. */
const ownSsh = () => ({ command: ['ssh'] as const, env: hostEnvironment() })

/** The result of something done on a machine. What it says of a failure is a sentence for the user. */
async function orRefused<T>(done: Promise<T>): Promise<T> {
  try {
    return await done
  } catch (thrown) {
    throw refused('conflict', (thrown as Error).message)
  }
}

function nameOf(host: string): string {
  const name = host
    .replace(/^.*@/, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '-')
    .slice(0, 32)
  if (/^[a-z0-9]/.test(name)) return name
  throw new InvalidArgumentError('Give the pool a name: --name box2')
}
