import type { ConnectionOptions } from 'node:tls'
import type { Endpoint, EndpointTls } from './launcher.ts'

/** Options of a connection on which both sides prove that they have the key. Its certificate names no host. */
export const tlsOptions = ({ certificate, key }: EndpointTls) =>
  ({ ca: certificate, cert: certificate, key, checkServerIdentity: () => undefined }) satisfies ConnectionOptions

/** The options of a connection, or of a WebSocket, to an endpoint: none where it asks for no key. */
export const connectOptions = ({ tls }: Endpoint) => (tls ? tlsOptions(tls) : {})
