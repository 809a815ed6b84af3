import { invalidValue } from '../../failure.ts'
import { withoutLogin } from './settings.ts'

/** Returns what a variable says that curl and the tools of the hub read, in lower or upper case; '' if it is not set. */
const variable = (environment: Readonly<Record<string, string | undefined>>, name: string): string =>
  (environment[name] || environment[name.toUpperCase()] || '').trim()

/** Returns the URL of a proxy. Throws Failure `invalid_value`; its message has no password. */
function proxyUrl(environment: Readonly<Record<string, string | undefined>>, name: string): string {
  const given = variable(environment, name)
  const url = given === '' || given.includes('://') ? given : `http://${given}`
  if (url === '' || (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))) return url
  const shown = withoutLogin(given)
  throw invalidValue(`${name.toUpperCase()} is not the address of a proxy: '${shown}'. Write it as http://proxy:3128.`)
}

/**
 * Runs `run` with its requests going through the proxy in HTTPS_PROXY or HTTP_PROXY, if one is set. NO_PROXY is respected,
 * and requests to this machine use no proxy. Requests for http go to the proxy as they are, because many allow a tunnel
 * (CONNECT) only to port 443. Rejects with Failure `invalid_value` for an invalid proxy.
 */
export async function behindProxy<T>(
  environment: Readonly<Record<string, string | undefined>>,
  run: () => Promise<T>,
): Promise<T> {
  const [httpProxy, httpsProxy] = [proxyUrl(environment, 'http_proxy'), proxyUrl(environment, 'https_proxy')]
  const none = variable(environment, 'no_proxy')
  if ((httpProxy === '' && httpsProxy === '') || none.split(/[\s,]+/).includes('*')) return run()
  const { EnvHttpProxyAgent, getGlobalDispatcher, setGlobalDispatcher } = await import('undici')
  const before = getGlobalDispatcher()
  const noProxy = [none, 'localhost', '127.0.0.1', '::1'].filter(Boolean).join(',')
  const agent = new EnvHttpProxyAgent({ httpProxy, httpsProxy, noProxy, proxyTunnel: false })
  setGlobalDispatcher(agent)
  try {
    return await run()
  } finally {
    setGlobalDispatcher(before)
    void agent.close()
  }
}
