import { readdirSync, readFileSync } from 'node:fs'
import { jsonOf } from './json.ts'

/** Returns the text of a file; undefined if it cannot be read. */
export function optionalText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Returns the value of a JSON file; undefined if it cannot be read or is no JSON. */
export const optionalJson = (path: string): unknown => jsonOf(optionalText(path) ?? '')

/** Returns the names in a folder; none if it cannot be read. */
export function optionalNames(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
