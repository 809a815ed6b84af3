import unittest

from infer_worker.text_pieces import TextPieces


def decode(tokens):
    """As a tokenizer whose tokens are bytes."""
    return bytes(tokens).decode(errors='replace')


def streamed(content, stops=()):
    pieces = TextPieces(decode, stops)
    released = [pieces.add(token) for token in content]
    return [*released, pieces.end()], pieces.stopped


class Text(unittest.TestCase):
    def test_pieces_join_to_the_text(self):
        text = 'a – b 😀 c'
        pieces, stopped = streamed(text.encode(), ['never'])
        self.assertEqual((''.join(pieces), stopped), (text, False))

    def test_no_piece_has_half_a_character(self):
        pieces, _ = streamed('é😀'.encode())
        self.assertEqual(pieces, ['', 'é', '', '', '', '😀', ''])

    def test_bytes_that_are_no_character_are_released(self):
        pieces, _ = streamed(b'\x80\x80\x80\x80a')
        self.assertTrue(''.join(pieces).endswith('a'))
        self.assertEqual(streamed(b'a\xe2')[0][-1], '\ufffd')

    def test_a_decoder_that_joins_by_what_precedes(self):
        words = ['Hello', 'world', '!']
        pieces = TextPieces(lambda tokens: ' '.join(words[token] for token in tokens))
        self.assertEqual([pieces.add(0), pieces.add(1), pieces.add(2), pieces.end()], ['Hello', ' world', ' !', ''])


class Stops(unittest.TestCase):
    def test_table(self):
        for content, stops, text, stopped in (
            ('abcdef', ['cd'], 'ab', True),
            ('abcdef', ['x', 'ef'], 'abcd', True),
            ('abcdef', ['def', 'c'], 'ab', True),
            ('abcabd', ['abd'], 'abc', True),
            ('aab', ['ab'], 'a', True),
            ('abcde', ['def'], 'abcde', False),
            ('abc', ['abc'], '', True),
        ):
            pieces, found = streamed(content.encode(), stops)
            self.assertEqual((''.join(pieces), found), (text, stopped), (content, stops))

    def test_what_may_begin_a_stop_is_held_back(self):
        pieces, _ = streamed(b'xabaX', ['abab'])
        self.assertEqual(pieces, ['x', '', '', '', 'abaX', ''])
