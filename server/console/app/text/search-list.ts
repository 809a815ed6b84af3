/** Texts of lists with a search. */
export const searchListText = {
  search: (label: string) => `Search: ${label}`,
  nothing: 'Nothing is found.',
  some: (shown: number, all: number) => `${shown} of ${all} are shown. Type to find the others.`,
  first: (shown: number) => `${shown} are shown. Type to find the others.`,
  found: (count: number) => (count === 1 ? '1 found' : `${count} found`),
} as const
