import { setGlobalProxyFromEnv } from 'node:http'
import { invalidValue } from '../../failure.ts'
import { withoutLogin } from './settings.ts'

/** Variables that curl and the tools of the hub read, in lower or upper case. */
const names = ['http_proxy', 'https_proxy', 'no_proxy'] as const

/**
 * Runs `run` with its requests going through the proxy in HTTPS_PROXY or HTTP_PROXY, if one is set. NO_PROXY is respected,
 * and requests to this machine use no proxy. Rejects with Failure `invalid_value` for an invalid proxy.
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
    throw invalidValue(
      `HTTP_PROXY or HTTPS_PROXY is not the address of a proxy: ${withoutLogin((cause as Error).message)}.`,
    )
  }
  try {
    return await run()
  } finally {
    restore()
  }
}
