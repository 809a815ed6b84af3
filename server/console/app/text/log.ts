import { named } from './named.ts'

export const logText = {
  ...named('pause', 'resume'),
  label: (of: string) => `Log of ${of}`,
  empty: 'Nothing has been written yet. New lines appear here at once.',
  paused: (count: number) => `Paused. ${count} ${count === 1 ? 'line has' : 'lines have'} come since.`,
  reconnecting: 'The connection is lost. It is tried again.',
  filter: 'Filter lines',
  missed: (count: number) => `${count} lines were left out, because this page could not keep up.`,
  noMatch: 'No line has this text.',
} as const
