import { expect, test } from 'vitest'
import { promptExcerpt, promptIn } from '../../../core/store/job-prompt.ts'

const user = (content: unknown) => ({ role: 'user', content })
const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }

test.each([
  ['a prompt', { prompt: 'A boat', negative_prompt: 'rain' }, 'A boat'],
  ['several prompts', { prompt: ['One', 'Two'] }, 'One Two'],
  ['tokens in place of a prompt', { prompt: [1, 2, 3] }, null],
  [
    'the last message of the user',
    {
      messages: [
        { role: 'system', content: 'Be kind' },
        user('First'),
        { role: 'assistant', content: 'Yes' },
        user('Last'),
      ],
    },
    'Last',
  ],
  ['a message with an image', { messages: [user([image, { type: 'text', text: 'What is it?' }])] }, 'What is it?'],
  ['a message without text', { messages: [user([image])] }, null],
  ['messages of the Responses API', { input: [user([{ type: 'input_text', text: 'Hello' }])] }, 'Hello'],
  ['a text to read aloud', { input: 'Good morning', voice: 'a' }, 'Good morning'],
  ['an empty prompt beside a query', { prompt: ' ', query: 'Why?' }, 'Why?'],
  ['the texts of a score', { text_1: ['a', 'b'], text_2: 'c' }, 'a b'],
  ['an audio file', { file: 'file_1' }, null],
  ['inputs that are not known yet', null, null],
])('what a person wrote: %s', (_, inputs, expected) => {
  expect(promptIn(JSON.stringify(inputs))).toBe(expected)
})

test.each([
  ['one line', '  A\n\n boat \t at sea ', 'A boat at sea'],
  ['200 characters at most, and no half of one', `${'x'.repeat(198)}😀😀😀`, `${'x'.repeat(198)}…`],
])('an excerpt is %s', (_, prompt, expected) => {
  expect(promptExcerpt(prompt)).toBe(expected)
})
