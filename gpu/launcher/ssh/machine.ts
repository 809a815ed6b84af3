import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Discovery } from '../../devices/device.ts'
import { openAgentClient } from './agent-client.ts'
import { type Connection, openConnection, type SshProgram } from './connection.ts'
import { agentScript, folderThere, programThere } from './program-there.ts'
import { quoted, type SshAddress } from './ssh-command.ts'

/** Milliseconds in which the machine must say what it has. */
const limitMs = 60_000

/**
 * Checks a machine as a server does before it starts an engine there: connects, copies infer, and asks what devices it
 * finds. Nothing else stays there. Rejects with a sentence.
 */
export const inspectMachine = (address: SshAddress, ssh: SshProgram): Promise<Discovery> =>
  withConnection(address, ssh, async connection => {
    const program = await programThere(connection, address.host)
    const child = connection.start(agentScript(connection, program, { id: randomUUID(), orphanGraceMs: 0 }))
    const agent = await openAgentClient(child, { changed() {}, complained() {} })
    const signal = AbortSignal.timeout(limitMs)
    const found = (await agent.call('capacity', {}, signal)) as Discovery
    await agent.call('close', {}, signal)
    await agent.ended
    return found
  })

/** Engines of a server, or a server itself, use the machine. */
export class MachineInUse extends Error {}

/**
 * Removes everything of infer from a machine: the executable, copied models and what engines have kept. Resolves with the
 * bytes that were freed. Rejects with a sentence, as `MachineInUse` while engines or a server use it.
 */
export const cleanMachine = (address: SshAddress, ssh: SshProgram): Promise<number> =>
  withConnection(address, ssh, async connection => {
    const { exitCode, stdout, stderr } = await connection.run(cleanScript(folderThere(connection.box.cache)))
    const bytes = Number(/(\d+)\s*$/.exec(stdout)?.[1] ?? Number.NaN)
    if (exitCode === inUse)
      throw new MachineInUse(
        `'${address.host}' runs engines of a server, or one is connected to it. Stop that server, or take the pool out of its infer.yaml and wait until its engines have ended.`,
      )
    if (exitCode !== 0 || Number.isNaN(bytes))
      throw new Error(`'${address.host}' could not be cleaned: ${stderr.trim() || 'it did not answer'}.`)
    return bytes
  })

/** Exit code of the script where something still runs. */
const inUse = 75

/** Processes in a folder of a pool are keepers and engines; a lock that is taken is that of an agent. */
const cleanScript = (folder: string): string => `d=${quoted(folder)}
for p in /proc/[0-9]*/cwd; do case "$(readlink "$p" 2>/dev/null)" in "$d"/pools/*) exit ${inUse};; esac; done
for l in "$d"/pools/*/run/agent.lock; do test ! -e "$l" || flock -n "$l" true || exit ${inUse}; done
cd "$d" 2>/dev/null || { echo 0; exit 0; }
du -sk programs models pools 2>/dev/null | awk '{ s += $1 } END { printf "%.0f\\n", s * 1024 }'
rm -rf programs models pools; rmdir "$d" 2>/dev/null; exit 0`

async function withConnection<T>(
  address: SshAddress,
  ssh: SshProgram,
  run: (connection: Connection) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'infer-ssh-'))
  try {
    const connection = await openConnection(address, join(folder, 'ssh'), ssh)
    try {
      return await run(connection)
    } finally {
      await connection.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
