import { named } from './named.ts'

/** Texts of what differs between two texts or values. */
export const differencesText = {
  ...named('first', 'second', 'value'),
  added: 'added',
  removed: 'removed',
  unchanged: (lines: number) => `${lines} unchanged ${lines === 1 ? 'line' : 'lines'}`,
  unchangedCharacters: (count: string) => `… ${count} unchanged characters …`,
  missing: 'Not there',
  cut: (characters: string) => `The texts are long. Only their first ${characters} characters are compared.`,
  cutLines: (lines: string) => `There are more lines. Only the first ${lines} are shown.`,
  more: 'There are more differences. Only the first 100 are shown.',
} as const
