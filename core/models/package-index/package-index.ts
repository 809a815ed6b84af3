import { Failure } from '../../failure.ts'
import { withoutLogin } from '../hub/without-login.ts'

type Environment = Readonly<Record<string, string | undefined>>

const defaultIndex = 'https://pypi.org/simple'

/**
 * Returns the address of the Python package index, without a slash at its end: INFER_PYPI_INDEX, else PIP_INDEX_URL,
 * else PyPI. Throws Failure `invalid_value` for an address that cannot be used.
 */
export function packageIndex(environment: Environment): string {
  const variable = ['INFER_PYPI_INDEX', 'PIP_INDEX_URL'].find(name => environment[name]?.trim())
  if (variable === undefined) return defaultIndex
  const address = environment[variable]!.trim().replace(/\/+$/, '')
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw new Failure(
      'invalid_value',
      `${variable} must be an address such as ${defaultIndex}, not '${withoutLogin(address)}'.`,
    )
  const { username, password } = new URL(address)
  if (username !== '' || password !== '')
    throw new Failure(
      'invalid_value',
      `${variable} holds a user name or a password, which infer does not send. Set INFER_PYPI_INDEX to an index without a login.`,
    )
  return address
}
