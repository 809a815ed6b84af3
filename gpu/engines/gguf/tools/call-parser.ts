import { jsonOf } from '../../../../core/json.ts'
import { heldBack } from '../stop.ts'
import { notBeginningWith, step, untilMarker } from './automaton.ts'
import { openingsOf, type ToolCallForm } from './call-form.ts'

/** A call begins with its name; the following arguments belong to it. */
export type ToolCallEvent = { kind: 'call'; name: string } | { kind: 'arguments'; text: string }
export type AnswerEvent = ToolCallEvent | { kind: 'content'; text: string } | { kind: 'reasoning'; text: string }

type Stage = 'opening' | 'text' | 'body' | 'call' | 'list' | 'named' | 'arguments' | 'after'

/**
 * Parses an answer into content and calls. Markers and the white space around them are in neither. Text that begins
 * like a call but is none is content. The events do not depend on how the text is split into pieces, once adjacent
 * events of one kind are joined.
 */
export function openToolCallParser(form: ToolCallForm, names: readonly string[]) {
  const opening = form.bare ? openingOf(form, names) : undefined
  let stage: Stage = opening ? 'opening' : 'text'
  let held = ''
  let calls = 0
  /** Number of calls before the current one. */
  let before = 0
  let state = 0
  let inList = false
  let read = openJsonToolCall(() => {})
  let value = openValue()
  let events: AnswerEvent[] = []

  function say(event: AnswerEvent) {
    if (event.kind === 'call') calls++
    append(events, event)
  }

  /** Every stage takes one character and returns whether it consumed it. */
  const stages: Record<Stage, (character: string) => boolean> = {
    /** The beginning of an answer, which may be a call without a marker. */
    opening(character) {
      held += character
      const target = step(opening!.automaton, state, character)
      if (target === 'nowhere') {
        const begun = held
        startCall()
        for (const known of begun.trimStart()) stages.call(known)
      } else if (typeof target === 'number' && target < opening!.rest) state = target
      else {
        stage = 'text'
        const begun = held
        held = ''
        for (const known of begun) stages.text(known)
      }
      return true
    },
    /** Holds back what may belong to a marker, and the white space before it. */
    text(character) {
      held += character
      if (held.endsWith(form.marker)) {
        say({ kind: 'content', text: held.slice(0, -form.marker.length).trimEnd() })
        held = ''
        stage = 'body'
        return true
      }
      const sure = held.slice(0, held.length - heldBack(held, [form.marker])).trimEnd()
      // White space after a call does not begin content.
      if (sure !== '') {
        say({ kind: 'content', text: sure })
        held = held.slice(sure.length)
      }
      return true
    },
    /** After a marker: the first character determines the form of the call. */
    body(character) {
      if (isSpace(character)) return true
      if (form.family.startsWith('mistral') && character === '[') {
        inList = true
        stage = 'list'
        return true
      }
      if (form.family.startsWith('mistral') && character !== '{') {
        stage = 'named'
        return false
      }
      startCall()
      return false
    },
    call(character) {
      held += character
      const progress = read(character)
      if (progress === 'more') return true
      if (progress === 'broken' && calls === before) say({ kind: 'content', text: held })
      held = ''
      stage = inList ? 'list' : 'after'
      return true
    },
    list(character) {
      if (character === ']') {
        inList = false
        stage = 'after'
      } else if (!isSpace(character) && character !== ',') {
        startCall()
        return false
      }
      return true
    },
    /** A name, perhaps an id, then the arguments. */
    named(character) {
      if (character === '{') {
        say({ kind: 'call', name: /^[^[\s]*/.exec(held)![0] })
        held = ''
        value = openValue()
        stage = 'arguments'
        return false
      }
      held += character
      return true
    },
    arguments(character) {
      say({ kind: 'arguments', text: character })
      if (value(character) === 'last') stage = 'after'
      return true
    },
    /** After a call: its closing text, another call, or content. */
    after(character) {
      held += character
      const whole = held.trimStart()
      const text = whole.startsWith(form.separator) ? whole.slice(form.separator.length).trimStart() : whole
      if (text === form.close || text === form.marker) {
        held = ''
        if (text === form.marker) stage = 'body'
        return true
      }
      // An empty text is a prefix of every marker.
      if (form.close?.startsWith(text) || form.marker.startsWith(text)) return true
      held = ''
      if (form.bare && text === '{') {
        startCall()
        return false
      }
      stage = 'text'
      for (const known of whole) stages.text(known)
      return true
    },
  }

  function startCall() {
    stage = 'call'
    before = calls
    held = ''
    read = openJsonToolCall(say)
  }

  function taken(): AnswerEvent[] {
    const pending = events
    events = []
    return pending
  }

  return {
    push(text: string): AnswerEvent[] {
      for (const character of text) while (!stages[stage](character));
      return taken()
    },
    /**
     * Ends the answer and returns the remaining events. Of an incomplete call the unparsed rest is dropped; `cut`: the
     * token limit ended the answer, so that what begins like a call is one.
     */
    end(cut = false): AnswerEvent[] {
      const begun = heldBack(held, [form.marker])
      if (cut && stage !== 'text') held = ''
      else if (cut && begun > 0) held = held.slice(0, -begun).trimEnd()
      if (stage === 'opening' || (stage === 'text' && (calls === 0 || held.trim() !== '')))
        say({ kind: 'content', text: held })
      held = ''
      return taken()
    },
    get calls(): number {
      return calls
    },
    /** Whether a call has begun and not ended. */
    get calling(): boolean {
      return !['opening', 'text', 'after'].includes(stage)
    },
  }
}

/** Adds an event, or extends the last one if it is of the same kind. */
export function append(events: AnswerEvent[], event: AnswerEvent): void {
  const last = events.at(-1)
  if (event.kind === 'call') events.push(event)
  else if (event.text === '') return
  else if (last !== undefined && last.kind !== 'call' && last.kind === event.kind) last.text += event.text
  else events.push({ ...event })
}

/** Text that may contain a call after its marker, and that must not begin like a call. */
export function openingOf(form: ToolCallForm, names: readonly string[], found = 'calls') {
  return notBeginningWith(openingsOf(names), offset => untilMarker(form.marker, { rule: found }, true, offset))
}

/**
 * Finds the end of one JSON value, character by character: 'last' for the character that ends it, 'past' for the one
 * that comes after a number or a word.
 */
function openValue() {
  let depth = 0
  let quoted = false
  let escaped = false
  return function take(character: string): 'inside' | 'last' | 'past' {
    if (quoted) {
      if (escaped) escaped = false
      else if (character === '\\') escaped = true
      else if (character === '"') {
        quoted = false
        return depth === 0 ? 'last' : 'inside'
      }
      return 'inside'
    }
    if (character === '"') quoted = true
    else if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') {
      if (depth === 0) return 'past'
      depth--
      return depth === 0 ? 'last' : 'inside'
    } else if (depth === 0 && (character === ',' || isSpace(character))) return 'past'
    return 'inside'
  }
}

const isSpace = (character: string): boolean => /\s/.test(character)

/** The result of a character: more is needed, the object is complete, or the text is not a call. */
type ToolCallProgress = 'more' | 'complete' | 'broken'

/**
 * Reads one call as models write it, `{"name": "f", "arguments": {…}}`, character by character. The arguments are
 * passed on unchanged as they arrive, once the name is known. `say` receives the events.
 */
function openJsonToolCall(say: (event: ToolCallEvent) => void) {
  let expected: 'object' | 'key' | 'colon' | 'value' | 'next' = 'object'
  /** Finds the end of the key or value that is being read; `text` is what was read of it. */
  let value: ReturnType<typeof openValue> | undefined
  let text = ''
  let key = ''
  let name: string | undefined
  /** Arguments that were read before the name. */
  let early = ''
  let hadArguments = false

  /** Arguments that are themselves a string of JSON must be complete before they can be read. */
  const isArguments = (asString: boolean) =>
    expected === 'value' && (key === 'arguments' || key === 'parameters') && text.startsWith('"') === asString

  function pass(piece: string) {
    hadArguments = true
    if (name === undefined) early += piece
    else say({ kind: 'arguments', text: piece })
  }

  /** Takes the complete key or value. Returns whether it may stand there. */
  function complete(): boolean {
    value = undefined
    const isKey = expected === 'key'
    const isText = isKey || key === 'name' || isArguments(true)
    const given = isText ? jsonOf(text) : ''
    if (typeof given !== 'string') return false
    if (isArguments(true)) pass(given)
    expected = isKey ? 'colon' : 'next'
    if (isKey) key = given
    else if (key === 'name') {
      if (name !== undefined) return false
      name = given
      say({ kind: 'call', name })
      if (early !== '') say({ kind: 'arguments', text: early })
    }
    return true
  }

  return function take(character: string): ToolCallProgress {
    if (value) {
      const how = value(character)
      if (how !== 'past') {
        text += character
        if (isArguments(false)) pass(character)
        return how === 'inside' || complete() ? 'more' : 'broken'
      }
      if (!complete()) return 'broken'
    }
    if (isSpace(character)) return 'more'
    if ((expected === 'key' && character === '"') || expected === 'value') {
      text = ''
      value = openValue()
      return take(character)
    }
    if (expected === 'next' && character === '}') {
      if (name === undefined) return 'broken'
      if (!hadArguments) say({ kind: 'arguments', text: '{}' })
      return 'complete'
    }
    if (expected === 'colon' && character === ':') expected = 'value'
    else if (expected === 'object' ? character === '{' : expected === 'next' && character === ',') expected = 'key'
    else return 'broken'
    return 'more'
  }
}
