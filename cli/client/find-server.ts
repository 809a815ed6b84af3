import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { remoteServer } from '../../core/config.ts'
import type { Failure } from '../../core/failure.ts'
import { CommandFailure, exitCodes, refused } from '../terminal/exit-codes.ts'
import { runningServer } from './server-file.ts'

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

export interface InsideServer {
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
  return refused(
    'no_capacity',
    `The server ${url} cannot be reached (${code ?? message}). ${isRemote ? 'Check INFER_URL and whether the server runs.' : 'Read its log.'}`,
    { cause: thrown },
  )
}
