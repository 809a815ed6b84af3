import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../../gpu/launcher/address.ts'
import { processesWith, sendSignal } from '../../../../gpu/launcher/processes.ts'
import type { SshProgram } from '../../../../gpu/launcher/ssh/connection.ts'

const sshd = '/usr/sbin/sshd'

/** Why there can be no ssh server here; undefined if there can. */
export function noSshServer(): string | undefined {
  try {
    accessSync(sshd)
    execFileSync('ssh', ['-V'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'openssh-server and openssh-client are not installed here'
  }
}

/** Whether a process may have mounts of its own here. */
export function hasMounts(): boolean {
  try {
    execFileSync('unshare', ['-m', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * A machine that is reached by ssh: a real server of ssh on loopback, with keys and a cache of its own, until it is closed.
 * `hidden`: a folder that it does not see; `variables`: of its environment.
 */
export async function openBox(hidden?: string, variables: Readonly<Record<string, string>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'infer-box-'))
  chmodSync(folder, 0o700)
  const at = (name: string) => join(folder, name)
  const makeKey = (name: string) => execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(name)])
  makeKey('host')
  makeKey('user')
  const port = await freePort()
  const cache = at('cache')
  mkdirSync(cache)
  writeFileSync(at('authorized'), readFileSync(at('user.pub')), { mode: 0o600 })
  const know = (key: string) =>
    writeFileSync(at('known'), `[127.0.0.1]:${port} ${readFileSync(at(`${key}.pub`), 'utf8')}`)
  know('host')
  writeFileSync(
    at('sshd_config'),
    [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${at('host')}`,
      `PidFile ${at('pid')}`,
      `AuthorizedKeysFile ${at('authorized')}`,
      'StrictModes no',
      'UsePAM no',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'MaxStartups 100',
      'MaxSessions 100',
      'PermitRootLogin prohibit-password',
      `SetEnv XDG_CACHE_HOME=${cache} XDG_DATA_HOME=${at('data')} NODE_COMPILE_CACHE=${process.env.NODE_COMPILE_CACHE ?? ''} ${Object.entries(
        variables,
      )
        .map(([name, value]) => `${name}=${value}`)
        .join(' ')}`,
    ].join('\n'),
  )
  writeFileSync(
    at('ssh_config'),
    [
      'Host *',
      '  StrictHostKeyChecking yes',
      `  UserKnownHostsFile ${at('known')}`,
      '  GlobalKnownHostsFile none',
    ].join('\n'),
  )
  if (userInfo().uid === 0) mkdirSync('/run/sshd', { recursive: true })
  let server: ChildProcess | undefined

  const box = {
    cache,
    port,
    folder,
    settings: {
      host: `${userInfo().username}@127.0.0.1`,
      port,
      identity_file: at('user'),
      orphan_grace: 60_000,
    },
    ssh: ['ssh', '-F', at('ssh_config')] satisfies SshProgram['command'],
    host: process.env,
    /** Makes the client know another key of the machine, or its own again. */
    know,
    makeKey,
    async start(): Promise<void> {
      const command = [sshd, '-D', '-e', '-f', at('sshd_config')]
      const apart = ['unshare', '-m', 'sh', '-c', `mount -t tmpfs none '${hidden}' && exec "$@"`, 'sh']
      const [file, ...args] = hidden === undefined ? command : [...apart, ...command]
      server = spawn(file!, args, { stdio: ['ignore', 'ignore', 'pipe'] })
      let said = ''
      for await (const piece of server.stderr!) {
        said += String(piece)
        if (said.includes('Server listening')) break
      }
      if (!said.includes('Server listening')) throw new Error(said)
      server.stderr?.resume()
    },
    /** Ends the server, but no session. */
    async stop(): Promise<void> {
      if (!server || server.exitCode !== null || server.signalCode !== null) return
      const ended = once(server, 'exit')
      server.kill('SIGKILL')
      await ended
    },
    /** Kills what serves the open connections, as a network does that is gone. */
    async cut(): Promise<void> {
      for (const pid of await childrenOf(server!.pid!)) sendSignal(pid, 'SIGKILL')
    },
    /** Ends everything of it. */
    async close(): Promise<void> {
      if (server?.exitCode === null && server.signalCode === null) await box.cut()
      await box.stop()
      rmSync(folder, { recursive: true, force: true })
    },
    /** Process ids of the agents on the machine. */
    agents: async (): Promise<number[]> => {
      const found = await processesWith({ XDG_CACHE_HOME: new Set([cache]) })
      return found
        .map(({ pid }) => pid)
        .filter(pid => {
          const path = `/proc/${pid}/cmdline`
          const words = existsSync(path) ? readFileSync(path, 'utf8').split('\0') : []
          return words.includes('--orphan-grace') && words[0] !== 'sh'
        })
    },
  }
  await box.start()
  return box
}

export type Box = Awaited<ReturnType<typeof openBox>>

async function childrenOf(pid: number): Promise<number[]> {
  const found = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return found === '' ? [] : found.split(' ').map(Number)
}
