/** Texts of what was spent of a limit. */
export const budgetText = {
  spend: 'Spending this month',
  spent: (spent: string, limit: string, percent: number) => `${spent} of ${limit} · ${percent} %`,
  part: (spent: string, percent: number) => `${spent} · ${percent} %`,
  unlimited: (spent: string) => `${spent}, no limit`,
  held: (held: string) => `Up to ${held} more for unfinished work`,
  forecast: (total: string) => `About ${total} by the end of the month`,
  reachedAt: 'At this pace the limit is reached',
  reached: 'The limit is reached. More work is refused.',
  resets: 'Starts again',
} as const
