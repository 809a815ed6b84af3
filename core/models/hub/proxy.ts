import { setGlobalProxyFromEnv } from 'node:http'
import { Failure } from '../../failure.ts'

/** What curl and the hub's own tools read, in either case. */
const names = ['http_proxy', 'https_proxy', 'no_proxy'] as const

/**
 * Runs something whose requests go through the proxy that HTTPS_PROXY or HTTP_PROXY names, where they name one;
 * NO_PROXY is heeded, and this machine is never behind a proxy. Throws Failure `invalid_value` for one that cannot be.
 */
export async function behindProxy<T>(
  environment: Readonly<Record<string, string | undefined>>,
  run: () => Promise<T>,
): Promise<T> {
  const [http, https, none] = names.map(name => environment[name] || environment[name.toUpperCase()] || undefined)
  if (http === undefined && https === undefined) return run()
  let restore: () => void
  try {
    restore = setGlobalProxyFromEnv({
      ...(http === undefined ? {} : { http_proxy: http }),
      ...(https === undefined ? {} : { https_proxy: https }),
      no_proxy: [none, 'localhost', '127.0.0.1', '::1'].filter(Boolean).join(','),
    })
  } catch (cause) {
    throw new Failure(
      'invalid_value',
      `HTTP_PROXY or HTTPS_PROXY is no address of a proxy: ${(cause as Error).message}.`,
      {
        cause,
      },
    )
  }
  try {
    return await run()
  } finally {
    restore()
  }
}
