import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { Failure } from '../../failure.ts'

/** How a hub is reached and where its files are kept. */
export interface HubSettings {
  /** Its base address, without a slash at the end. */
  endpoint: string
  /** The cache that all tools of this user share. */
  cache: string
  token: string | undefined
  /** Whether the network must not be used. */
  offline: boolean
  /** The proxy that downloads go through, without its password, and the variable that names it. */
  proxy?: { address: string; variable: string } | undefined
}

/**
 * What the environment says, by the variables that the hub's own tools read: HF_ENDPOINT, HF_HOME, HF_HUB_CACHE,
 * HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE. `tokenFile` is a file that was named on the command line.
 * Throws Failure `invalid_value` for an endpoint or a token file that cannot be used.
 * Source: the environment variables page of huggingface_hub.
 */
export function hubSettings(
  environment: Readonly<Record<string, string | undefined>>,
  { tokenFile }: { tokenFile?: string | undefined } = {},
): HubSettings {
  const at = (name: string) => environment[name]?.trim() || undefined
  const place = (path: string) => path.replace(/^~(?=\/|$)/, homedir())
  const home = place(at('HF_HOME') ?? join(at('XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'huggingface'))
  const endpoint = (at('HF_ENDPOINT') ?? 'https://huggingface.co').replace(/\/+$/, '')
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol))
    throw new Failure(
      'invalid_value',
      `HF_ENDPOINT must be an address such as https://huggingface.co, not '${endpoint}'.`,
    )
  const { username, password } = new URL(endpoint)
  if (username !== '' || password !== '')
    throw new Failure(
      'invalid_value',
      'HF_ENDPOINT holds a user name or a password, which are not sent. Leave them out and give a token with HF_TOKEN.',
    )
  const token = tokenFile === undefined ? implied(at, place, home) : named(tokenFile)
  return {
    endpoint,
    cache: place(at('HF_HUB_CACHE') ?? at('HUGGINGFACE_HUB_CACHE') ?? join(home, 'hub')),
    token,
    offline: isOn(at('HF_HUB_OFFLINE')),
    proxy: proxyOf(endpoint, at),
  }
}

function proxyOf(endpoint: string, at: (name: string) => string | undefined): HubSettings['proxy'] {
  const names = endpoint.startsWith('https:') ? ['https_proxy', 'HTTPS_PROXY'] : ['http_proxy', 'HTTP_PROXY']
  const variable = names.find(name => at(name) !== undefined)
  if (variable === undefined) return undefined
  const address = at(variable)!
  return { address: URL.canParse(address) ? new URL(address).host || address : address, variable }
}

/** The token that nobody has named: of the environment, else what a login has left. */
function implied(
  at: (name: string) => string | undefined,
  place: (path: string) => string,
  home: string,
): string | undefined {
  const token = at('HF_TOKEN') ?? at('HUGGING_FACE_HUB_TOKEN')
  if (token !== undefined && !isToken(token))
    throw new Failure('invalid_value', 'HF_TOKEN must hold one token and nothing else.')
  if (token !== undefined) return token
  if (isOn(at('HF_HUB_DISABLE_IMPLICIT_TOKEN'))) return undefined
  return saved(place(at('HF_TOKEN_PATH') ?? join(home, 'token')))
}

/** Whether it can stand in a header. */
const isToken = (text: string): boolean => /^[\x21-\x7e]+$/.test(text)

const isOn = (value: string | undefined): boolean => /^(1|on|yes|true)$/i.test(value ?? '')

/** What the login command of the hub's tools has left; nothing when nobody has logged in. */
function saved(path: string): string | undefined {
  try {
    const token = readFileSync(path, 'utf8').trim()
    return isToken(token) ? token : undefined
  } catch {
    return undefined
  }
}

function named(path: string): string {
  let token: string
  try {
    token = readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw new Failure('invalid_value', `The token file '${path}' cannot be read: ${(cause as Error).message}.`, {
      cause,
    })
  }
  if (!isToken(token))
    throw new Failure('invalid_value', `The token file '${path}' must hold one token and nothing else.`)
  return token
}
