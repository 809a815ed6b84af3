import { z } from 'zod'

/** Hosts that rarely have a certificate: this machine, IP addresses, names without a domain and those of local networks. */
const plainHost = /^(localhost|[\d.]+|\[[\da-f:]+\]|[\w-]+|.*\.(local|lan|internal))(:\d+)?(\/|$)/i

const error = ({ input }: { input?: unknown }): string => {
  const rest = String(input).replace(/^[a-z]*:?\/+/i, '')
  const meant = `${plainHost.test(rest) ? 'http' : 'https'}://${rest}`
  return `Write the whole address, with http:// or https://.${URL.canParse(meant) && rest.length < 200 ? ` Did you mean '${meant}'?` : ''}`
}

/** An address with http or https. Its error suggests what was meant: `localhost:8080` is no address. */
export const HttpUrl = z.url({ error, abort: true }).regex(/^https?:\/\/./i, { error })
