/** Names that are written as their keys: `openModel` is "Open model", and `timed_out` is "Timed out". */
export const named = <const Key extends string>(...keys: readonly Key[]) =>
  Object.fromEntries(
    keys.map(key => {
      const words = key.replaceAll('_', ' ').replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
      return [key, words[0]!.toUpperCase() + words.slice(1)]
    }),
  ) as Readonly<Record<Key, string>>
