import { nearest } from '../nearest.ts'

/** The member of a diagnostic that guesses what was meant; nothing where no name is near. */
export function suggested(name: string, names: Iterable<string>): { suggestion?: string } {
  const suggestion = nearest(name.slice(0, 64), names)
  return suggestion === undefined ? {} : { suggestion }
}
