import type { TLSSocket } from 'node:tls'
import type { Call } from './call.ts'

/**
 * What the addresses that we hand out begin with: `public_url` where the operator set one, else the address under which
 * this request reached us (its Host was checked before). Some clients load nothing from a private host but from the one
 * that they were told of.
 */
export const originOf = (call: Call): string =>
  call.owners.config.public_url?.replace(/\/+$/, '') ??
  `http${(call.req.socket as Partial<TLSSocket>).encrypted ? 's' : ''}://${call.req.headers.host ?? ''}`
