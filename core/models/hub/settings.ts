import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { homeDirectory, withHome } from '../../base-directory.ts'
import { invalidValue } from '../../failure.ts'
import { optionalText } from '../../optional-file.ts'

/** How to reach a hub and where to keep its files. */
export interface HubSettings {
  /** Its base address, without a slash at the end. */
  endpoint: string
  /** The cache that all tools of this user share. */
  cache: string
  token: string | undefined
  /** Whether the network must not be used. */
  offline: boolean
  /** The proxy of downloads, without its password, and the variable that sets it. */
  proxy?: { address: string; variable: string } | undefined
}

/**
 * Reads the settings from the environment variables of the hub's own tools: HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_TOKEN,
 * HF_TOKEN_PATH, HF_HUB_OFFLINE. `tokenFile` is a file from the command line.
 * Throws Failure `invalid_value` for an endpoint or a token file that cannot be used.
 * Source: the environment variables page of huggingface_hub.
 */
export function hubSettings(
  environment: Readonly<Record<string, string | undefined>>,
  { tokenFile }: { tokenFile?: string | undefined } = {},
): HubSettings {
  const variableOf = (name: string) => environment[name]?.trim() || undefined
  const expand = (path: string) => withHome(path, environment)
  const home = expand(
    variableOf('HF_HOME') ??
      join(variableOf('XDG_CACHE_HOME') ?? join(homeDirectory(environment), '.cache'), 'huggingface'),
  )
  const endpoint = (variableOf('HF_ENDPOINT') ?? 'https://huggingface.co').replace(/\/+$/, '')
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol))
    throw invalidValue(
      `HF_ENDPOINT must be an address such as https://huggingface.co, not '${withoutLogin(endpoint)}'.`,
    )
  const { username, password } = new URL(endpoint)
  if (username !== '' || password !== '')
    throw invalidValue(
      'HF_ENDPOINT contains a user name or a password, which are not sent. Remove them and pass a token with HF_TOKEN.',
    )
  const token = tokenFile === undefined ? implicitToken(variableOf, expand, home) : tokenIn(tokenFile)
  return {
    endpoint,
    cache: expand(variableOf('HF_HUB_CACHE') ?? variableOf('HUGGINGFACE_HUB_CACHE') ?? join(home, 'hub')),
    token,
    offline: isOn(variableOf('HF_HUB_OFFLINE')),
    proxy: proxyOf(endpoint, variableOf),
  }
}

function proxyOf(endpoint: string, variableOf: (name: string) => string | undefined): HubSettings['proxy'] {
  const names = endpoint.startsWith('https:') ? ['https_proxy', 'HTTPS_PROXY'] : ['http_proxy', 'HTTP_PROXY']
  const variable = names.find(name => variableOf(name) !== undefined)
  if (variable === undefined) return undefined
  const address = variableOf(variable)!
  return {
    address: URL.canParse(address) ? new URL(address).host || withoutLogin(address) : withoutLogin(address),
    variable,
  }
}

/** Returns the token of the environment, else the token that a login has saved. */
function implicitToken(
  variableOf: (name: string) => string | undefined,
  expand: (path: string) => string,
  home: string,
): string | undefined {
  const token = variableOf('HF_TOKEN') ?? variableOf('HUGGING_FACE_HUB_TOKEN')
  if (token !== undefined && !isToken(token)) throw invalidValue('HF_TOKEN must contain one token and nothing else.')
  if (token !== undefined) return token
  if (isOn(variableOf('HF_HUB_DISABLE_IMPLICIT_TOKEN'))) return undefined
  return savedToken(expand(variableOf('HF_TOKEN_PATH') ?? join(home, 'token')))
}

/** Whether the text is valid in a header. */
const isToken = (text: string): boolean => /^[\x21-\x7e]+$/.test(text)

const isOn = (value: string | undefined): boolean => /^(1|on|yes|true)$/i.test(value ?? '')

/** Returns the token that the login command of the hub's tools has saved; undefined without a login. */
function savedToken(path: string): string | undefined {
  const token = optionalText(path)?.trim() ?? ''
  return isToken(token) ? token : undefined
}

function tokenIn(path: string): string {
  let token: string
  try {
    token = readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw invalidValue(`The token file '${path}' cannot be read: ${(cause as Error).message}.`, {
      cause,
    })
  }
  if (!isToken(token)) throw invalidValue(`The token file '${path}' must contain one token and nothing else.`)
  return token
}

/** Removes a user name and a password from an address for a message, even if it is not a valid URL. */
export const withoutLogin = (address: string): string => address.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1')
