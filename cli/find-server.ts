import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { remote } from '../core/config.ts'
import type { Failure } from '../core/failure.ts'
import { CommandFailure, exitCodes, refused } from './exit-codes.ts'
import { runningServer } from './server-file.ts'

export interface Server {
  /** Without a slash at its end. */
  url: string
  token: string
  /** INFER_URL names it; else it is the one of the data directory. */
  isRemote: boolean
  /** PEM: the one certificate that is accepted from it; undefined where the usual checks hold. */
  certificate?: string | undefined
}

/** The server that commands speak to. Throws usage for variables that are wrong, and where no server runs. */
export function findServer(dataDir: string): Server {
  const far = remote()
  if (far) {
    if (!URL.canParse(far.url) || !/^https?:/.test(far.url))
      throw new CommandFailure(
        exitCodes.usage,
        'invalid_value',
        `INFER_URL is '${far.url}', which is no address. Write it as http://host:8787.`,
      )
    if (!far.token)
      throw new CommandFailure(
        exitCodes.usage,
        'missing_api_key',
        'INFER_URL is set, but INFER_TOKEN is not. Set it to a token of that server.',
      )
    // People paste the base address of an OpenAI client.
    return { url: far.url.replace(/(\/std)?\/v1$/, ''), token: far.token, isRemote: true }
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

/** Why no answer came, by what the system threw. */
export function unreachable({ url, isRemote }: Server, dataDir: string, thrown: unknown): Failure {
  const { code, message } = thrown as NodeJS.ErrnoException
  if (!isRemote && code === 'ECONNREFUSED') return notRunning(dataDir)
  return refused(
    'no_capacity',
    `The server ${url} cannot be reached (${code ?? message}). ${isRemote ? 'Check INFER_URL and whether it runs.' : 'Look into its log.'}`,
    { cause: thrown },
  )
}
