import { colors } from 'consola/utils'

/** Styles by meaning. Without a terminal, or with NO_COLOR set, each returns its text unchanged. */
export interface Paint {
  strong: (text: string) => string
  faint: (text: string) => string
  good: (text: string) => string
  warning: (text: string) => string
  bad: (text: string) => string
  name: (text: string) => string
}

const same = (text: string): string => text
export const plainPaint: Paint = { strong: same, faint: same, good: same, warning: same, bad: same, name: same }

const coloured: Paint = {
  strong: colors.bold,
  faint: colors.dim,
  good: colors.green,
  warning: colors.yellow,
  bad: colors.red,
  name: colors.cyan,
}

/**
 * Returns the styles for one stream. consola respects NO_COLOR and TERM=dumb, but enables colors in pipes when CI or
 * FORCE_COLOR is set; infer never writes colors to a pipe.
 */
export const paintFor = (isTerminal: boolean): Paint => (isTerminal ? coloured : plainPaint)

// oxlint-disable-next-line no-control-regex -- matches control characters
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** Removes control characters, with which external text such as a model's answer could control the terminal. */
export const printable = (text: string): string => text.replace(controls, '')
