import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { dataDirectory, remoteServer } from '../../core/config.ts'
import type { Failure } from '../../core/failure.ts'
import { untrustedCertificate } from '../../core/untrusted-certificate.ts'
import { CommandFailure, exitCodes, refused, usageFailure } from '../terminal/exit-codes.ts'
import { commandName } from '../terminal/options.ts'

export interface FoundServer {
  /** Without a trailing slash. */
  url: string
  token: string
  /** True for the server at INFER_URL, false for the server of the data directory. */
  isRemote: boolean
  /** PEM: the only certificate that is accepted from it; undefined for the usual verification. */
  certificate?: string | undefined
  /** A server inside this process; undefined for any other. */
  inside?: InsideServer | undefined
}

interface InsideServer {
  /** Opens a connection to it. */
  connect: () => Duplex
  /** Returns what the last failed request has thrown. */
  thrown: () => unknown
}

/** Finds the server for commands. Throws usage for invalid variables, and a Failure when no server runs. */
export function findServer(dataDir: string): FoundServer {
  const configured = remoteServer()
  if (configured) {
    if (!URL.canParse(configured.url) || !/^https?:/.test(configured.url))
      throw new CommandFailure(
        exitCodes.usage,
        'invalid_value',
        `INFER_URL is '${configured.url}', which is not a URL. Write it as http://host:8787.`,
      )
    if (!configured.token)
      throw new CommandFailure(
        exitCodes.usage,
        'missing_api_key',
        'INFER_URL is set, but INFER_TOKEN is not. Set it to a token of that server.',
      )
    // Users paste the base URL of an OpenAI client.
    return { url: configured.url.replace(/(\/std)?\/v1$/, ''), token: configured.token, isRemote: true }
  }
  const server = runningServer(dataDir)
  if (!server) throw notRunning(dataDir)
  const { url, certificate } = server
  return { url: connectable(url), token: rootToken(dataDir), isRemote: false, certificate }
}

function rootToken(dataDir: string): string {
  const path = join(dataDir, 'root-token')
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw refused(
      'missing_api_key',
      `The root token ${path} cannot be read. Run this as the user of the server, or set INFER_URL and INFER_TOKEN.`,
      { cause },
    )
  }
}

/** A server that listens on every address is reached over loopback. */
const connectable = (url: string): string =>
  url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=[:/]|$)/, '//127.0.0.1').replace(/\/+$/, '')

const notRunning = (dataDir: string): Failure =>
  refused('no_capacity', `No server is running on ${dataDir}. Start one with: infer serve`)

/** Converts a system error of a request to a Failure. */
export function serverUnreachable({ url, isRemote }: FoundServer, dataDir: string, thrown: unknown): Failure {
  const { code, message } = thrown as NodeJS.ErrnoException
  if (!isRemote && code === 'ECONNREFUSED') return notRunning(dataDir)
  const untrusted = isRemote ? untrustedCertificate(new URL(url).host, thrown) : undefined
  if (untrusted)
    return refused(
      'invalid_value',
      `${untrusted} That of 'infer serve --https' is https/certificate.pem in the data directory of the server.`,
      { cause: thrown },
    )
  return refused(
    'no_capacity',
    `The server ${url} cannot be reached (${code ?? message}). ${isRemote ? 'Check INFER_URL and whether the server runs.' : 'Read its log.'}`,
    { cause: thrown },
  )
}

/** Address and process of a running server: the content of `server.json` in the data directory. */
interface ServerFile {
  /** Base URL without a trailing slash, such as `http://127.0.0.1:8787`. */
  url: string
  pid: number
  /** The address of its socket, such as `0.0.0.0:8787`. */
  listen?: string | undefined
  /** All its base URLs, `url` first; undefined for an older server. */
  urls?: readonly string[] | undefined
  /** PEM: the only certificate that commands accept from it. Undefined for HTTP. */
  certificate?: string | undefined
}

const filePath = (dataDir: string): string => join(dataDir, 'server.json')

/** Writes the file for this process's server. Renames it into place, so that a command never reads half of it. */
export function writeServerFile(dataDir: string, { url, listen, urls, certificate }: Omit<ServerFile, 'pid'>): void {
  const path = filePath(dataDir)
  writeFileSync(`${path}.new`, JSON.stringify({ url, pid: process.pid, listen, urls, certificate }), {
    mode: 0o600,
  })
  renameSync(`${path}.new`, path)
}

/** Removes the file of this process's server, which has stopped. That of another process stays. */
export function removeServerFile(dataDir: string): void {
  if (readServerFile(dataDir)?.pid === process.pid) rmSync(filePath(dataDir), { force: true })
}

/** Reads the file, even if its process has ended; undefined when there is no readable file. */
function readServerFile(dataDir: string): ServerFile | undefined {
  try {
    const { url, pid, listen, urls, certificate } = JSON.parse(
      readFileSync(filePath(dataDir), 'utf8'),
    ) as Partial<ServerFile>
    return typeof url === 'string' && URL.canParse(url) && Number.isInteger(pid)
      ? {
          url,
          pid: pid!,
          ...(typeof listen === 'string' ? { listen } : {}),
          ...(Array.isArray(urls) ? { urls } : {}),
          ...(typeof certificate === 'string' ? { certificate } : {}),
        }
      : undefined
  } catch {
    return undefined
  }
}

/** Returns the server that runs on this data directory, or undefined. A killed server leaves its file behind. */
export function runningServer(dataDir: string): ServerFile | undefined {
  const server = readServerFile(dataDir)
  return server && isAlive(server.pid) ? server : undefined
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    // EPERM: the process is alive and belongs to another user.
    return (cause as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Returns the data directory for a command that works on local files. Throws usage while INFER_URL is set, unless
 * `--data-dir` is given: the command would otherwise change or copy the wrong installation.
 */
export function localDirectory(command: CommandUnknownOpts, dataDir: string | undefined): string {
  if (dataDir === undefined)
    refuseRemote(command, 'works on the data directory of this machine', ', or name the directory with --data-dir')
  return dataDirectory(dataDir)
}

/** Throws usage while INFER_URL is set. `does` completes the message: what the command does. */
export function refuseRemote(command: CommandUnknownOpts, does: string, orElse = ''): void {
  const server = remoteServer()
  if (server)
    throw usageFailure(
      `'${commandName(command)}' ${does}, but INFER_URL is set to ${server.url}. Run it on that machine, or unset INFER_URL${orElse}.`,
    )
}
