import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { dataDirectory, hostEnvironment } from '../../core/config.ts'
import { readConfig } from '../../core/models/config.ts'
import { editConfigFile, previewConfigEdit } from '../../core/models/config-file.ts'
import { addPool, removePool } from '../../core/models/edit.ts'
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
  defineRemove(command.command('remove'), terminal)
  defineClean(command.command('clean'), terminal)
  withExamples(command, [
    ['infer pool add user@box', 'check a machine, copy infer to it, and add it'],
    ['infer pool list', 'the pools of infer.yaml'],
    ['infer pool remove box', 'take it out of infer.yaml, and clean the machine'],
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

function defineRemove(command: Command, terminal: Terminal): void {
  const remove = withCommon(command)
    .summary('take a pool out of infer.yaml')
    .description(
      'Takes a pool out of infer.yaml; refused while models name it. A running server ends its engines there after their requests. From a machine that is reached by ssh it then removes what infer has copied there, as `infer pool clean` does, and waits up to 30 s until the server has released it.',
    )
    .argument('<name>', 'the pool')
    .option('--keep-files', 'leave what infer has copied to the machine')
    .option('--config <path>', 'the file to take it out of; default: infer.yaml in the data directory')
    .action(async (name, { keepFiles, config, dataDir, json }) => {
      const path = config ?? join(dataDirectory(dataDir), 'infer.yaml')
      const settings = poolIn(name, poolsIn(dataDir, config))
      editConfigFile(path, (text, file) => removePool(text, name, file))
      const cleaned = settings.kind === 'ssh' && !keepFiles ? await cleanedSoon(settings, terminal) : undefined
      const left = cleaned && 'reason' in cleaned ? cleaned.reason : null
      const bytes = cleaned && 'bytes' in cleaned ? cleaned.bytes : null
      if (json) return terminal.json({ pool: name, config: path, bytes, files_left: left })
      terminal.print(`Removed the pool '${name}' from ${path}.`)
      if (settings.kind !== 'ssh') return
      const host = printable(settings.host)
      if (bytes !== null) terminal.print(`Removed infer from ${host}: ${sizeText(bytes)}.`)
      else
        terminal.remark(
          `${left === null ? '' : `${printable(left)} `}What infer has copied stays there. Later: ${cleanCommand(settings)}`,
        )
    })
  withExamples(remove, [
    ['infer pool remove box', 'its machine keeps nothing of infer'],
    ['infer pool remove box --keep-files', 'the next infer pool add copies nothing again'],
  ])
}

function defineClean(command: Command, terminal: Terminal): void {
  const clean = withCommon(command)
    .summary('remove what infer has copied to a machine')
    .description(
      'Removes the executable, the copied models and the caches of engines from the machine of a pool of the kind ssh, or of one that is no pool any more. Refused while engines of a server run there.',
    )
    .argument('[name]', 'the pool')
    .option('--host <host>', 'instead of a pool the machine, as ssh takes it: box, or user@box')
    .option('--port <number>', 'port of its ssh server', readCount(1, 65_535))
    .option('--identity-file <path>', 'private key of ssh')
    .option('--config <path>', 'the configuration that the server uses')
    .action(async (name, { host, port, identityFile, config, dataDir, json }) => {
      if ((name === undefined) === (host === undefined))
        throw new InvalidArgumentError('Name a pool, or a machine: infer pool clean --host user@box')
      const settings =
        name === undefined
          ? { host: host!, port, identity_file: identityFile }
          : machineOf(name, poolsIn(dataDir, config))
      const { cleanMachine } = await import('../../gpu/launcher/ssh/machine.ts')
      const bytes = await orRefused(cleanMachine(settings, ownSsh()))
      terminal.result(
        json,
        { ...(name !== undefined && { pool: name }), bytes },
        `Removed infer from ${printable(settings.host)}: ${sizeText(bytes)}.`,
      )
    })
  withExamples(clean, [
    ['infer pool clean box', 'the pool stays in infer.yaml, and the next start copies infer again'],
    ['infer pool clean --host user@box', 'a machine that is no pool any more'],
  ])
}

/** Milliseconds for which a running server may take to release a machine, and between two attempts to clean it. */
const releaseMs = 30_000
const againMs = 1_000

/** Cleans a machine once a running server has released it: the bytes, or the reason why that was not done, as a sentence. */
async function cleanedSoon(settings: SshPool, terminal: Terminal): Promise<{ bytes: number } | { reason: string }> {
  terminal.waiting(`Removing infer from ${printable(settings.host)} …`)
  const { cleanMachine, MachineInUse } = await import('../../gpu/launcher/ssh/machine.ts')
  const until = performance.now() + releaseMs
  for (;;)
    try {
      return { bytes: await cleanMachine(settings, ownSsh()) }
    } catch (thrown) {
      if (!(thrown instanceof MachineInUse) || performance.now() > until) return { reason: (thrown as Error).message }
      await pause(againMs)
    }
}

const cleanCommand = ({ host, port, identity_file: key }: SshPool): string =>
  [
    'infer pool clean --host',
    host,
    ...(port ? ['--port', port] : []),
    ...(key ? ['--identity-file', /^[\w./~@-]+$/.test(key) ? key : JSON.stringify(key)] : []),
  ].join(' ')

const poolsIn = (dataDir: string | undefined, config: string | undefined) =>
  readConfig(config ?? join(dataDirectory(dataDir), 'infer.yaml'), config !== undefined).pools

const placeOf = (pool: PoolSettings): string =>
  pool.kind === 'ssh'
    ? pool.host
    : pool.kind === 'slurm'
      ? (pool.partition ?? 'the default partition')
      : (pool.namespace ?? 'the default namespace')

function poolIn(name: string, pools: ReturnType<typeof poolsIn>): PoolSettings {
  const settings = Object.hasOwn(pools, name) ? pools[name] : undefined
  if (!settings) throw refused('not_found', `There is no pool '${name}'. See: infer pool list`)
  return settings
}

function machineOf(name: string, pools: ReturnType<typeof poolsIn>): SshPool {
  const settings = poolIn(name, pools)
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
