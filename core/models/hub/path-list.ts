/** Lists up to twelve names, and how many more there are. */
export const pathList = (paths: readonly string[]): string =>
  [...paths.slice(0, 12), ...(paths.length > 12 ? [`and ${paths.length - 12} more`] : [])].join(', ')
