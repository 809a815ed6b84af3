const quotes = '"""'

/**
 * Joins typed lines into messages. A line that ends with a backslash continues on the next line, three quotes begin a
 * message that the next three quotes end, and pasted lines belong to the next line that the user ends with Enter.
 */
export function openMessageLines() {
  let held = ''
  let isQuoted = false

  return {
    /** Takes a typed line. Returns the complete message, or undefined while it continues. */
    take(line: string): string | undefined {
      const opens = !isQuoted && held === '' ? /^(\/system\s+)?"""/.exec(line) : null
      if (opens) {
        isQuoted = true
        held = opens[1] ?? ''
        line = line.slice(opens[0].length)
      }
      if (isQuoted) {
        const end = line.trimEnd()
        if (!end.endsWith(quotes)) {
          held += `${line}\n`
          return undefined
        }
        isQuoted = false
        return release(end.slice(0, -quotes.length))
      }
      if (line.endsWith('\\')) {
        held += `${line.slice(0, -1)}\n`
        return undefined
      }
      return release(line)
    },
    /** Holds a pasted line that ended with a line break. */
    hold(line: string): void {
      held += `${line}\n`
    },
    forget(): void {
      held = ''
      isQuoted = false
    },
    isOpen: (): boolean => held !== '' || isQuoted,
  }

  function release(last: string): string {
    const whole = held + last
    held = ''
    return whole
  }
}
