import { z } from 'zod'
import { section } from '../config.ts'
import { coversLoopback, networkOf } from '../network-address.ts'

/**
 * Returns why `ollama.loopback_token` cannot be used with these proxies: what a proxy on this machine forwards looks like a
 * request of a local program if the proxy leaves out X-Forwarded-For.
 */
export function loopbackTokenFault({
  ollama,
  trusted_proxies,
}: {
  ollama: z.output<typeof OllamaSettings>
  trusted_proxies: readonly string[]
}): string | undefined {
  if (ollama.loopback_token === undefined || !coversLoopback(trusted_proxies.map(networkOf))) return undefined
  return "'ollama.loopback_token' lets requests from this machine in without a token, and 'trusted_proxies' has a proxy on this machine: its clients could look like local programs. Remove the setting, or the loopback addresses from 'trusted_proxies'."
}

/** The section `ollama` of infer.yaml. */
export const OllamaSettings = section(
  "The API for Ollama's clients, many of which cannot send a token.",
  { loopback_token: 'tok_01JC0000000000000000000000' },
  {
    loopback_token: z
      .string()
      .regex(/^tok_[0-9A-Za-z]{10,64}$/, 'must be the id of a token (tok_…), as `infer token list` shows it')
      .optional()
      .meta({
        description:
          'Id of the token, not its secret, as which requests below `/ollama` count that come without a token from a program on this machine: by a direct connection to a loopback address, and from no web page. Not together with `trusted_proxies` on this machine.',
        example: 'tok_01JC0000000000000000000000',
        absent: 'none: every request needs a token',
      }),
  },
)
