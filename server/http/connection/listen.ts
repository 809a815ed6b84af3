import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { lookup } from 'node:dns'
import type { Server as HttpServer, RequestListener } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import { createServer, Server } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type HTTPSOptions, type Listener, listen } from 'listhen'
import { Failure } from '../../../core/failure.ts'
import { listenAddress } from '../../../core/listen-address.ts'
import { findPortHolder, type PortHolder } from '../../../core/port-holder.ts'
import type { KeyPair, NewKeyPair } from './certificate.ts'

export interface ListenOptions {
  handler: RequestListener
  /** `host:port`, with brackets around an IPv6 host; 127.0.0.1 without a host; port 0 is any free one. */
  at: string
  /**
   * Serves HTTPS with this key pair, or with a self-signed one that is generated for these names; HTTP if undefined.
   */
  https: KeyPair | NewKeyPair | undefined
  /** Whether other processes of this user may listen on the same address at the same time. */
  shared?: boolean
  /** Sets limits and handlers on the server before it listens. */
  configure: (server: HttpServer | HttpsServer) => void
  /** A file descriptor of a socket that listens already; `at` is its address. */
  inherited?: number | undefined
}

/**
 * How many connections the kernel queues until they are accepted, at most net.core.somaxconn. A client retries a
 * connection that does not fit only after a second, so thousands at once must fit. listhen has no option for it.
 */
export const backlog = 4096

/**
 * Node publishes this when `listen` is called on any server, the only time at which listhen's server can be configured.
 */
const listenCalled = 'tracing:net.server.listen:asyncStart'

/**
 * Opens a socket with listhen. Resolves with the node server, the address of its socket (`0.0.0.0:8787`), its URLs (the first
 * is for this machine), and the key pair that it uses. Throws Failure `invalid_value` or `conflict`, with the reason.
 */
export async function openListener({ handler, at, https, shared = false, inherited, configure }: ListenOptions) {
  const { host, port } = readAddress(at)
  // An address instead of a name: listhen replaces names that it does not accept by localhost.
  const { address: hostname } = await promisify(lookup)(host).catch((cause: unknown) => {
    throw cannotListen(at, cause)
  })
  const failed = Promise.withResolvers<never>()
  let server: HttpServer | HttpsServer | undefined
  const onListen = (message: unknown) => {
    const { server: opened, options } = message as {
      server: unknown
      options: { backlog?: number; reusePort?: boolean; fd?: number }
    }
    if (!(opened instanceof Server) || !opened.listeners('request').includes(handler)) return
    server = opened as HttpServer | HttpsServer
    options.backlog = backlog
    if (shared) options.reusePort = true
    if (inherited !== undefined) options.fd = inherited
    server.once('error', failed.reject)
    configure(server)
  }
  // A shared address is opened beside any server that shares it too, such as another infer.
  const taken = shared && inherited === undefined ? await lastingRefusalOf(hostname, port) : undefined
  if (taken) throw cannotListen(at, taken)
  subscribe(listenCalled, onListen)
  let listener: Listener
  try {
    listener = await Promise.race([
      listen(handler, listhenOptions(hostname, inherited === undefined ? port : 0, https)),
      failed.promise,
    ])
  } catch (thrown) {
    // The address of an inherited socket is taken, by the server before.
    throw cannotListen(at, (inherited === undefined && (await refusalOf(hostname, port))) || thrown)
  } finally {
    unsubscribe(listenCalled, onListen)
  }
  if (!server) throw new Error('listhen opened a server that could not be configured')
  server.off('error', failed.reject)
  const { address } = listener
  if (port !== 0 && address.port !== port && inherited === undefined) {
    await new Promise(closed => server!.close(closed))
    throw unsafePort(at)
  }
  const urls = (await listener.getURLs({ extraURLs: [] })).map(({ url }) => reachable(url))
  return {
    server,
    listen: `${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`,
    urls: [...new Set(urls)] as [string, ...string[]],
    keyPair: listener.https || undefined,
  }
}

function readAddress(at: string) {
  const address = listenAddress(at)
  if (!address)
    throw new Failure('invalid_value', `The listen address '${at}' is not host:port, for example 127.0.0.1:8787.`)
  return address
}

function listhenOptions(hostname: string, port: number, https: ListenOptions['https']): Parameters<typeof listen>[1] {
  const anyHost = hostname === '0.0.0.0' || hostname === '::'
  return {
    // An object, because a plain 0 opens port 3000.
    port: { port, random: port === 0, alternativePortRange: noAlternatives, verbose: false },
    hostname,
    public: anyHost,
    https: https && ('key' in https ? { ...https } : selfSigned(https)),
    // Everything else that listhen does by itself, or reads from the environment, is off.
    showURL: false,
    autoClose: false,
    open: false,
    clipboard: false,
    qr: false,
    isProd: true,
    isTest: false,
    extraURLs: [],
  }
}

/** No alternative ports are tried. */
const noAlternatives = [] as unknown as [number, number]

/** Options of a self-signed certificate, without listhen's invented location and organization. */
const selfSigned = ({ names, validDays }: NewKeyPair): HTTPSOptions =>
  Object.assign(
    { domains: [...names], validityDays: validDays },
    { commonName: 'infer', organization: 'infer', organizationalUnit: '', countryCode: '', state: '', locality: '' },
  )

/** Returns the base URL at which this machine reaches a socket that listens on all addresses. */
const reachable = (url: string) => new URL(url).origin.replace(/\/\/(0\.0\.0\.0|\[::\])/, '//127.0.0.1')

/**
 * Returns the error that lasts for a second, or for five where only gateway processes are there: those of a server that was
 * killed leave the address a moment later.
 */
async function lastingRefusalOf(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  for (let looks = 1; ; looks++) {
    const refusal = await refusalOf(host, port)
    if (refusal?.code !== 'EADDRINUSE' || looks === 50) return refusal
    if (looks >= 10 && !findPortHolder(port)?.isGateway) return refusal
    await delay(100)
  }
}

/** Returns the system's error for opening the address; undefined if it opens. listhen has one error for all causes. */
function refusalOf(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise(resolve => {
    const probe = createServer()
    probe.once('error', resolve)
    probe.listen({ host, port }, () => probe.close(() => resolve(undefined)))
  })
}

/** Returns the failure of opening this address, which names who has it and what to do. */
export function cannotListen(at: string, thrown: unknown) {
  const { code, message, name } = thrown as NodeJS.ErrnoException
  // listhen opens or tries port 3000 in place of a port that it calls unsafe.
  if (code === undefined && name === 'GetPortError') return unsafePort(at)
  const { host, port } = readAddress(at)
  const whys: Record<string, string> = {
    EACCES: `this user may not listen on port ${port}. Choose a port above 1023 with --listen`,
    EADDRNOTAVAIL: `${host} is no address of this machine. Name one of its own with --listen`,
    ENOTFOUND: `no host '${host}' is known here. Name an address of this machine with --listen`,
  }
  const why = code === 'EADDRINUSE' ? describeHolder(findPortHolder(port)) : (whys[code ?? ''] ?? message)
  return new Failure('conflict', `Cannot listen on ${at}: ${why}.`, { cause: thrown })
}

/** Describes the process that listens on the port, and what to do about it. */
function describeHolder(holder: PortHolder | undefined) {
  if (!holder) return 'another program listens there. Stop it, or choose another address with --listen'
  const { pid, program, dataDir } = holder
  return dataDir === undefined
    ? `another program listens there (${program}, process ${pid}). Stop it, or choose another address with --listen`
    : `another infer listens there (process ${pid}, data directory ${dataDir}). Stop it with 'kill ${pid}', or choose another address with --listen`
}

const unsafePort = (at: string) =>
  new Failure(
    'invalid_value',
    `Cannot listen on ${at}: browsers refuse this port, because another protocol uses it. Choose another port with --listen.`,
  )
