import { Client } from 'undici'
import { connectOptions } from '../launcher/endpoint-tls.ts'
import type { Endpoint } from '../launcher/launcher.ts'

/** Connects to an engine for requests that are not about its work. Close it. */
export const openEngineClient = (endpoint: Endpoint, more: Client.Options = {}): Client =>
  new Client(endpoint.origin, {
    socketPath: endpoint.socketPath,
    connect: connectOptions(endpoint),
    allowH2: false,
    ...more,
  })
