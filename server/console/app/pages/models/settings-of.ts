export interface Setting {
  key: string
  value: string
}

/** Returns the settings that have a value, those of a group by their path: `sampling.temperature`. */
export function settingsOf(settings: Readonly<Record<string, unknown>>, before = ''): Setting[] {
  return Object.entries(settings).flatMap(([name, value]) => {
    const key = `${before}${name}`
    if (value === null || value === undefined) return []
    if (Array.isArray(value))
      return value.length === 0 ? [] : [{ key, value: value.map(one => textOf(one)).join(', ') }]
    if (typeof value === 'object') return settingsOf(value as Record<string, unknown>, `${key}.`)
    return [{ key, value: textOf(value) }]
  })
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
