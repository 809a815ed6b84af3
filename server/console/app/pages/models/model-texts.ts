import type { Schema } from '../../api/schema.ts'
import { costText } from '../../components/format.ts'
import { modelsText } from '../../text/models.ts'

const kinds = Object.entries(modelsText.prices) as [keyof typeof modelsText.prices, string][]

/** What the use of a model costs: `0.5 USD for a million input tokens`. Empty if it costs nothing. */
export const priceTexts = (price: Schema<'ModelPrice'> | null): string[] =>
  price === null
    ? []
    : kinds.flatMap(([kind, what]) => (price[kind] > 0 ? [`${costText(price[kind], price.currency)} ${what}`] : []))

export type Setting = Record<'key' | 'value', string>

/** Returns the settings that have a value, those of a group by their path: `sampling.temperature`. */
export const settingsOf = (settings: Readonly<Record<string, unknown>>, before = ''): Setting[] =>
  Object.entries(settings).flatMap(([name, value]) => {
    const key = `${before}${name}`
    if (value === null || value === undefined) return []
    if (Array.isArray(value))
      return value.length === 0 ? [] : [{ key, value: value.map(one => textOf(one)).join(', ') }]
    if (typeof value === 'object') return settingsOf(value as Record<string, unknown>, `${key}.`)
    return [{ key, value: textOf(value) }]
  })

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** A command as a shell takes it. */
export const shellCommand = (words: readonly string[]): string =>
  words.map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ')
