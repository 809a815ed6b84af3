/** Texts of speaking with a chat. */
export const voiceText = {
  dictate: 'Dictate the message',
  transcribing: 'Transcribing …',
  nothingSaid: 'Nothing was understood. Speak closer to the microphone, and try again.',
  read: 'Read aloud',
  stopReading: 'Stop reading',
  preparing: 'Preparing to read …',
  nothingToRead: 'The answer has no words that could be read aloud.',
  notPlayed: 'The browser did not play the audio. Allow this page to play sound, and try again.',
} as const
